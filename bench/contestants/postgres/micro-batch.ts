interface PendingCall<Input, Output> {
  readonly input: Input;
  readonly resolve: (output: Output) => void;
  readonly reject: (reason: unknown) => void;
}

/** Single calls in batches: what waits while one batch runs is the next one. */
export class MicroBatch<Input, Output> {
  readonly #run: (inputs: readonly Input[]) => Promise<readonly Output[]>;
  #pending: PendingCall<Input, Output>[] = [];
  #isRunning = false;

  /** Where `run` answers with fewer outputs than inputs, the last of them are asked for again. */
  constructor(run: (inputs: readonly Input[]) => Promise<readonly Output[]>) {
    this.#run = run;
  }

  submit(input: Input): Promise<Output> {
    const { promise, resolve, reject } = Promise.withResolvers<Output>();
    this.#pending.push({ input, resolve, reject });
    if (!this.#isRunning) void this.#runAll();
    return promise;
  }

  async #runAll(): Promise<void> {
    this.#isRunning = true;
    // Calls of the same turn share the first batch.
    await Promise.resolve();
    while (this.#pending.length > 0) {
      const batch = this.#pending;
      this.#pending = [];
      try {
        const outputs = await this.#run(batch.map(({ input }) => input));
        for (const [index, output] of outputs.entries()) batch[index]?.resolve(output);
        this.#pending.unshift(...batch.slice(outputs.length));
      } catch (reason) {
        for (const call of batch) call.reject(reason);
      }
    }
    this.#isRunning = false;
  }
}
