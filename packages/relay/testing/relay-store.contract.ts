import { describe } from "node:test";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import { describeAccessStore } from "./access-store.contract.ts";
import { describeAgentStore } from "./agent-store.contract.ts";
import { describeAwaitedDeliveries } from "./awaited-deliveries.contract.ts";
import { describeBoundedAnswers } from "./bounded-answers.contract.ts";
import { describeChangeFeed } from "./change-feed.contract.ts";
import { describeCommit } from "./commit.contract.ts";
import { describeJournalStore } from "./journal-store.contract.ts";
import { describeLeases } from "./leases.contract.ts";
import { describeMailboxStore } from "./mailbox-store.contract.ts";
import { describeMessageStore } from "./message-store.contract.ts";
import { describeNonces } from "./nonces.contract.ts";
import { describePushStore } from "./push-store.contract.ts";
import { describeRemoteTaskStore } from "./remote-task-store.contract.ts";
import { describeResultCache } from "./result-cache.contract.ts";
import { describeRetention } from "./retention.contract.ts";
import { describeDeliveryPurposes } from "./delivery-purposes.contract.ts";
import { describeTaskPushStore } from "./task-push-store.contract.ts";
import { describeTaskStore } from "./task-store.contract.ts";
import { describeTaskUpdates } from "./task-updates.contract.ts";
import { describeTenants } from "./tenants.contract.ts";
import { describeWaitingWork } from "./waiting-work.contract.ts";

/**
 * What every store must do; a behaviour that is not here is not promised. `open` gives a fresh, empty store
 * to each case.
 */
export function describeRelayStore(name: string, open: () => Promise<RelayStore>): void {
  describe(`RelayStore contract: ${name}`, () => {
    describeCommit(open);
    describeAccessStore(open);
    describeAgentStore(open);
    describeMessageStore(open);
    describeMailboxStore(open);
    describeDeliveryPurposes(open);
    describeWaitingWork(open);
    describeLeases(open);
    describeBoundedAnswers(open);
    describeAwaitedDeliveries(open);
    describeTaskStore(open);
    describeTaskUpdates(open);
    describeResultCache(open);
    describeJournalStore(open);
    describePushStore(open);
    describeRemoteTaskStore(open);
    describeTaskPushStore(open);
    describeNonces(open);
    describeRetention(open);
    describeChangeFeed(open);
    describeTenants(open);
  });
}
