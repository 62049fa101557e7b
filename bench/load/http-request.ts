const HOST = "Host: 127.0.0.1\r\n";

/** Requests as bytes, made once and sent many times, so that the load costs as little as it can. */
export function getRequest(path: string): Buffer {
  return Buffer.from(`GET ${path} HTTP/1.1\r\n${HOST}\r\n`);
}

export function postRequest(path: string, body: unknown, key?: string): Buffer {
  const json = JSON.stringify(body);
  const length = Buffer.byteLength(json);
  const credential = key === undefined ? "" : `Authorization: Bearer ${key}\r\n`;
  const type = "Content-Type: application/json\r\n";
  const head = `POST ${path} HTTP/1.1\r\n${HOST}${credential}${type}Content-Length: ${length}\r\n\r\n`;
  return Buffer.from(head + json);
}
