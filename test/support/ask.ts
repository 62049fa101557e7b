import type { ErrorBody } from "@a2a-relay/protocol";

export interface Reply<Body> {
  readonly status: number;
  readonly body: Body;
}

/** One call, answered or thrown. `Body` is what the caller expects and then compares. */
export async function ask<Body = unknown>(
  url: string,
  method: "GET" | "POST" | "DELETE",
  path: string,
  content?: unknown,
): Promise<Reply<Body>> {
  const response = await fetch(`${url}${path}`, {
    method,
    ...(content === undefined
      ? {}
      : { body: JSON.stringify(content), headers: { "content-type": "application/json" } }),
  });
  return { status: response.status, body: (await response.json()) as Body };
}

/** The code of an error answer, or undefined. */
export function errorCode({ body }: Reply<unknown>): string | undefined {
  return typeof body === "object" && body !== null && "error" in body
    ? (body as ErrorBody).error.code
    : undefined;
}
