import assert from "node:assert/strict";
import type { MailboxResponse } from "@a2a-relay/client";
import { Given, When } from "@cucumber/cucumber";
import { eventually } from "../../support/eventually.ts";
import { textsIn } from "./delivery-steps.ts";
import { PATIENCE_MS, type RelayWorld } from "./relay-world.ts";

/** What an agent does with what came over A2A: the same as with any other message. */

Given<RelayWorld>("an agent {word} that can {string}", async function (id: string, skill: string) {
  await this.client.register({ agent_id: id, skills: [{ id: "s1", description: skill }] });
});

When<RelayWorld>("{word} finds {string} in its mailbox", async function (agent: string, body: string) {
  const found = ({ messages }: MailboxResponse) => messages.find(({ message }) => message.body === body);
  const read = () => this.client.readMailbox(agent, { wait_ms: PATIENCE_MS });
  const message = found(await eventually(read, (messages) => found(messages) !== undefined));
  const { id: message_id, to: recipient, thread_id, task_id } = message?.message ?? assert.fail();
  this.receipts.push({ message_id, stage: "accepted", recipient, thread_id, ...(task_id && { task_id }) });
});

When<RelayWorld>("{word} works, and says {string}", async function (_agent: string, text: string) {
  await this.client.reportStatus(this.taskId, { state: "working", text });
});

When<RelayWorld>(/^\S+ writes (".+") into (\S+)$/, async function (quoted: string, name: string) {
  const pieces = textsIn(quoted);
  for (const [index, text] of pieces.entries()) {
    await this.client.addArtifact(this.taskId, {
      artifact: { artifactId: "a-1", name, parts: [{ text }] },
      append: index > 0,
      last_chunk: index === pieces.length - 1,
    });
  }
});

When<RelayWorld>(
  "{word} answers with a plain message {string}",
  async function (_agent: string, text: string) {
    await this.client.completeTask(this.taskId, { text, plain: true });
  },
);
