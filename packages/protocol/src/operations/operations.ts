import * as nouns from "./nouns.ts";
import { type Named, named } from "./operation.ts";

/** Every native operation of the relay, by noun. The annotation keeps the published declaration short. */
export const operations: Named<typeof nouns> = named(nouns);
