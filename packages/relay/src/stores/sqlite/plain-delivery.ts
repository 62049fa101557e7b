import type { SQLInputValue } from "node:sqlite";
import type { DeliveryRecord } from "../../core/ports/deliveries.ts";
import { threadColumn } from "./rows.ts";

/** Whether nothing has happened to a new delivery and its message asks for nothing unusual, as nearly always. */
export function isPlain(delivery: DeliveryRecord): boolean {
  return (
    delivery.state === "available" &&
    delivery.deliveredAtMs === null &&
    delivery.attempt === 0 &&
    delivery.leaseId === null &&
    delivery.worker === null &&
    delivery.leasedAtMs === null &&
    delivery.leaseExpiresAtMs === null &&
    delivery.reservedFor === null &&
    delivery.settledAtMs === null &&
    delivery.reason === null &&
    delivery.duplicateSafety === "unsafe" &&
    delivery.idempotencyKey === null &&
    !delivery.quiet
  );
}

/** The row of a delivery that is plain: what all of them share need not be given value by value. */
export const PLAIN_DELIVERY_ROW =
  "(?, ?, ?, ?, ?, ?, 'available', ?, null, 0, null, null, null, null, null, ?, null, null, 'unsafe', null, 0, ?, ?, 1)";

export function plainDeliveryValues(
  delivery: DeliveryRecord,
  ref: number,
  position: number,
): SQLInputValue[] {
  const { tenant, messageId, agentId, sender, taskId, expiresAtMs, threadId, purpose } = delivery;
  const thread = threadColumn(threadId, messageId);
  return [ref, tenant, messageId, agentId, sender, taskId, position, expiresAtMs, thread, purpose];
}
