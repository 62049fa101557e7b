import { describe } from "node:test";
import type { RelayStore } from "../src/core/ports/relay-store.ts";
import { describeAccess } from "./access.contract.ts";
import { describeAgents } from "./agents.contract.ts";
import { describeWatchedMailboxes } from "./watched-mailboxes.contract.ts";
import { describeBoundedAnswers } from "./bounded-answers.contract.ts";
import { describeClaims } from "./claims.contract.ts";
import { describeChangeFeed } from "./change-feed.contract.ts";
import { describeCommit } from "./commit.contract.ts";
import { describeCursors } from "./cursors.contract.ts";
import { describeJournal } from "./journal.contract.ts";
import { describeLeases } from "./leases.contract.ts";
import { describeDeliveries } from "./deliveries.contract.ts";
import { describeMessages } from "./messages.contract.ts";
import { describeNonces } from "./nonces.contract.ts";
import { describePushes } from "./pushes.contract.ts";
import { describeRemoteTasks } from "./remote-tasks.contract.ts";
import { describeResultCache } from "./result-cache.contract.ts";
import { describeRetention } from "./retention.contract.ts";
import { describeDeliveryPurposes } from "./delivery-purposes.contract.ts";
import { describeTaskPushes } from "./task-pushes.contract.ts";
import { describeTasks } from "./tasks.contract.ts";
import { describeTaskUpdates } from "./task-updates.contract.ts";
import { describeTenants } from "./tenants.contract.ts";
import { describeDeliveryQueue } from "./delivery-queue.contract.ts";

/**
 * What every store must do; a store promises nothing else. `open` gives a new, empty store to each case. It may be two
 * handles on one database that take the calls in turn: so no case expects that commits which run at the same time are
 * written in the order of the calls, nor that a call sees a commit which has not been answered.
 */
export function describeRelayStore(name: string, open: () => Promise<RelayStore>): void {
  describe(`RelayStore contract: ${name}`, () => {
    describeCommit(open);
    describeAccess(open);
    describeAgents(open);
    describeMessages(open);
    describeDeliveries(open);
    describeDeliveryPurposes(open);
    describeDeliveryQueue(open);
    describeLeases(open);
    describeBoundedAnswers(open);
    describeWatchedMailboxes(open);
    describeTasks(open);
    describeTaskUpdates(open);
    describeResultCache(open);
    describeJournal(open);
    describePushes(open);
    describeRemoteTasks(open);
    describeTaskPushes(open);
    describeClaims(open);
    describeNonces(open);
    describeRetention(open);
    describeChangeFeed(open);
    describeCursors(open);
    describeTenants(open);
  });
}
