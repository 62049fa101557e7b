import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

// Loaded into a server before its program, so that its memory can be compared with what it was before: a process
// keeps garbage and free space for as long as it likes, and both are many times the figure to measure.
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as (options: object) => void;
process.on("SIGUSR2", () => collect({ type: "major", execution: "sync", flavor: "last-resort" }));
