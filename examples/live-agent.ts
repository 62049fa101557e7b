// Messages that are pushed: zhiwei keeps a connection, which survives a restart of the relay; mei keeps none, and the
// relay calls its webhook, which checks the signature. Run it with
//
//   npx node --conditions=source examples/live-agent.ts

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { type MailboxItem, RelayAgent, RelayClient, verifyWebhook } from "@a2a-relay/client";
import { loadConfig, startRelay } from "a2a-relay";

// The relay calls public addresses only, unless its operator allows others, such as this machine.
const data = await mkdtemp(join(tmpdir(), "live-agent-"));
const flags = { data, "egress-allow": "127.0.0.1" };
let relay = await startRelay(loadConfig({ flags: { ...flags, port: "0" }, env: {}, dotenv: {} }));
const { url } = relay;

// Agents take a WebSocket, or a stream, or long polls: the best that their way to the relay allows.
const onError = (): void => console.log("the relay is away for a moment");
const zhiwei = new RelayAgent({ url, id: "zhiwei@studio", onError }).onTask((task) => `你好,${task.text}`);
const lulu = new RelayAgent({ url, id: "lulu@laptop", onError });
await Promise.all([zhiwei.start(), lulu.start()]);

const ask = async (body: string): Promise<string> => {
  const request = await lulu.request({ to: "zhiwei@studio", body });
  return (await request.result({ timeoutMs: 30_000 })).text;
};
console.log(await ask("lulu"));

// The relay goes away and comes back at the same address. The client reconnects by itself.
await relay[Symbol.asyncDispose]();
const { port } = new URL(url);
relay = await startRelay(loadConfig({ flags: { ...flags, port }, env: {}, dotenv: {} }));
const answer = await ask("又见面了");
console.log(answer);
assert.equal(answer, "你好,又见面了");
await Promise.all([lulu.stop(), zhiwei.stop()]);

// mei's server refuses a call whose signature is wrong. It answers first and works then.
let secret = "";
const arrived = Promise.withResolvers<MailboxItem>();
const receive = async (request: IncomingMessage): Promise<number> => {
  try {
    const { headers } = request;
    const webhook = await verifyWebhook({ headers, body: await buffer(request), secret });
    arrived.resolve(webhook.data as MailboxItem);
    return 204;
  } catch {
    return 401;
  }
};
const server = createServer((request, response) => {
  void receive(request).then((status) => response.writeHead(status).end());
}).listen(0, "127.0.0.1");
await once(server, "listening");
const callback_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;

const client = new RelayClient({ url });
const registered = await client.register({ agent_id: "mei@shanghai", callback_url, push: "webhook" });
secret = registered.push_secret ?? "";
const forged = await fetch(callback_url, { method: "POST", body: '{"type":"message.available"}' });
assert.equal(forged.status, 401);

await client.send({ from: "lulu@laptop", to: "mei@shanghai", body: "几点了?" });
const { message, message_id } = await arrived.promise;
console.log(`mei was called: "${message.body}" from ${message.from}`);
assert.equal(message.body, "几点了?");
// That it was called means that the message arrived. That it is done with it, it says itself.
assert.equal((await client.ack("mei@shanghai", { message_ids: [message_id] })).acknowledged, 1);

server.close();
server.closeAllConnections();
await relay[Symbol.asyncDispose]();
await rm(data, { recursive: true });
