const HOST = "Host: 127.0.0.1\r\n";

/** Requests as bytes, made once and sent many times, so that the load costs as little as it can. */
export function getRequest(path: string): Buffer {
  return Buffer.from(`GET ${path} HTTP/1.1\r\n${HOST}\r\n`);
}

/** The key is the same each time: it proves to a client that it was understood, and the load trusts its relay. */
export function upgradeRequest(path: string): Buffer {
  const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
  const protocol = "Sec-WebSocket-Protocol: a2a-relay.v1\r\n";
  const key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
  return Buffer.from(`GET ${path} HTTP/1.1\r\n${HOST}${upgrade}${protocol}${key}\r\n`);
}

export function postRequest(path: string, body: unknown, key?: string): Buffer {
  return post(path, body, key === undefined ? "" : `Authorization: Bearer ${key}\r\n`);
}

/** A call of A2A 1.0. */
export function a2aRequest(path: string, body: unknown): Buffer {
  return post(path, body, "A2A-Version: 1.0\r\n");
}

function post(path: string, body: unknown, header: string): Buffer {
  const json = JSON.stringify(body);
  const length = Buffer.byteLength(json);
  const type = "Content-Type: application/json\r\n";
  const head = `POST ${path} HTTP/1.1\r\n${HOST}${header}${type}Content-Length: ${length}\r\n\r\n`;
  return Buffer.from(head + json);
}
