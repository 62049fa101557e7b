import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

// The floor: what HTTP and JSON alone cost on this machine. It reads JSON, answers with it, keeps nothing.
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const message: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    const answer = Buffer.from(JSON.stringify({ message }));
    response.writeHead(201, { "content-type": "application/json", "content-length": answer.length });
    response.end(answer);
  });
});

server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  console.log(`listening http://127.0.0.1:${port}`);
});
process.once("SIGTERM", () => process.exit(0));
