import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CARD, EVENTS, PUSH_CONFIG, SEND_PARAMS, TASK } from "../../testing/a2a-samples.ts";
import { assertGolden } from "../../testing/golden-file.ts";
import type { A2aDialect, A2aOperation } from "./a2a-dialect.ts";
import { A2A_DIALECTS } from "./dialects.ts";
import { V03_REST_DIALECT } from "./v03-rest-dialect.ts";

type Sample = Readonly<Record<string, unknown>>;

const DIALECTS: readonly (readonly [string, A2aDialect])[] = [
  ...Object.entries(A2A_DIALECTS),
  ["0.3-rest", V03_REST_DIALECT],
];

const PARAMS: readonly (readonly [A2aOperation, Sample])[] = [
  ["send", SEND_PARAMS],
  ["stream", { ...SEND_PARAMS, configuration: { returnImmediately: true } }],
  ["get", { id: "t-1", historyLength: 3 }],
  ["list", { contextId: "c-1", status: "TASK_STATE_CANCELED", pageSize: 20, includeArtifacts: true }],
  ["cancel", { id: "t-1", metadata: { why: "不用了" } }],
  ["subscribe", { id: "t-1" }],
  ["push-create", PUSH_CONFIG],
  ["push-get", { taskId: "t-1", id: "p-1" }],
  ["push-list", { taskId: "t-1" }],
  ["push-delete", { taskId: "t-1", id: "p-1" }],
];

/** Older dialects show only interfaces of their own time, and only such a card comes back whole. */
const LEGACY_CARD: Sample = {
  ...CARD,
  supportedInterfaces: (CARD["supportedInterfaces"] as readonly Sample[]).slice(1),
};

const RESULTS: readonly (readonly [A2aOperation, Sample])[] = [
  ["send", { task: TASK }],
  ["get", TASK],
  ["list", { tasks: [TASK], nextPageToken: "次", pageSize: 1, totalSize: 2 }],
  ["cancel", { ...TASK, status: { state: "TASK_STATE_CANCELED" } }],
  ["push-create", PUSH_CONFIG],
  ["push-get", PUSH_CONFIG],
  ["push-list", { configs: [PUSH_CONFIG], nextPageToken: "" }],
  ["push-delete", {}],
  ["extended-card", LEGACY_CARD],
];

for (const [name, dialect] of DIALECTS) {
  const serves = ([operation]: readonly [A2aOperation, Sample]): boolean =>
    dialect.methods[operation] !== undefined;
  /** 0.1 has not enough words to come back to the same 1.0, so what it comes back to is pinned too. */
  const assertRead = (file: string, read: Sample, meant: Sample): void => {
    if (name === "0.1") assertGolden(`a2a/${name}/${file}-read`, read);
    else assert.deepEqual(read, meant);
  };

  describe(`A2A ${name}`, () => {
    it("asks as pinned, and reads that as it was meant", () => {
      const samples = PARAMS.filter(serves);
      const written = mapSamples(samples, dialect.writeParams.bind(dialect));
      assertGolden(`a2a/${name}/params`, written);
      const read = mapSamples(samples, (operation) => dialect.readParams(operation, written[operation]));
      const meant = mapSamples(samples, (operation, sample) => withWireDefaults(name, operation, sample));
      assertRead("params", read, meant);
    });

    it("answers as pinned, and reads that as it was meant", () => {
      const samples = RESULTS.filter(serves);
      const written = mapSamples(samples, dialect.writeResult.bind(dialect));
      assertGolden(`a2a/${name}/results`, written);
      const read = mapSamples(samples, (operation) => dialect.readResult(operation, written[operation]));
      assertRead("results", read, Object.fromEntries(samples));
    });

    it("streams as pinned, and reads that as it was meant", () => {
      const events = Object.entries(EVENTS);
      const written = events.map(([event, [sample, isFinal]]) => [
        event,
        dialect.writeEvent(sample, { isFinal }),
      ]);
      assertGolden(`a2a/${name}/events`, Object.fromEntries(written));
      const read = written.map(([event, wire]) => [event, dialect.readEvent(wire)]);
      const meant = events.map(([event, [sample]]) => [event, sample]);
      assertRead("events", Object.fromEntries(read) as Sample, Object.fromEntries(meant) as Sample);
    });

    it("writes a card as pinned, and reads that as pinned", () => {
      const written = dialect.writeCard(CARD);
      assertGolden(`a2a/${name}/card`, written);
      assertGolden(`a2a/${name}/card-read`, dialect.readCard(written));
    });
  });
}

function mapSamples(
  samples: readonly (readonly [A2aOperation, Sample])[],
  map: (operation: A2aOperation, sample: Sample) => unknown,
): Sample {
  return Object.fromEntries(samples.map(([operation, sample]) => [operation, map(operation, sample)]));
}

/** 0.2 always has a list of modes, so reading returns one. */
function withWireDefaults(name: string, operation: A2aOperation, sample: Sample): Sample {
  if (name !== "0.2" || operation !== "stream") return sample;
  return { ...sample, configuration: { acceptedOutputModes: [], returnImmediately: true } };
}
