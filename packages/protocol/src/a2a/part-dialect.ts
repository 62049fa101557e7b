import type { Part } from "../model/part.ts";
import {
  definedMembers,
  isJsonObject,
  type JsonObject,
  memberNames,
  renameMembers,
  withoutMembers,
} from "./json-members.ts";

/**
 * Converts parts between the dialects. In 1.0 the content's member names the kind (`text`, `raw`, `url`, `data`); 0.2
 * and 0.3 have a `kind`, 0.1 has a `type`, and all three put a file into a nested object. A part of an unknown kind
 * stays unchanged.
 */
const DISCRIMINATORS: readonly unknown[] = ["text", "file", "data"];

/** Metadata of an older part whose data object wraps another value; the SDKs use the same name. */
const WRAPPED = "data_part_compat";

const V1_NAMES = memberNames({ media_type: "mediaType", file_name: "filename", fileName: "filename" });

const FILE_NAMES = memberNames({
  bytes: "raw",
  fileWithBytes: "raw",
  file_with_bytes: "raw",
  uri: "url",
  fileWithUri: "url",
  file_with_uri: "url",
  name: "filename",
  mimeType: "mediaType",
  mime_type: "mediaType",
});
const FILE_MEMBERS = ["raw", "url", "filename", "mediaType"];

export function toV1Part(part: Part): Part {
  const named = renameMembers(part, V1_NAMES);
  const tags = ["kind", "type"].filter((tag) => DISCRIMINATORS.includes(named[tag]));
  const bare = withoutMembers(named, ...tags);
  if (hasFile(bare)) return liftFile(bare);
  const content = contentOf(bare);
  if (content === undefined) return named;
  return content === "data" ? unwrapData(bare) : bare;
}

/** 0.2 and 0.3. */
export function toKindPart(part: Part): Part {
  return toTaggedPart(part, "kind");
}

/** 0.1. */
export function toTypePart(part: Part): Part {
  return toTaggedPart(part, "type");
}

/** The JSON of 0.3's protocol buffers: data is nested, and files have other names. */
export function toProtoPart(part: Part): Part {
  const plain = toV1Part(part);
  const content = contentOf(plain);
  if (content === "file") {
    return sinkFile(plain, { raw: "fileWithBytes", url: "fileWithUri", filename: "name" });
  }
  if (content !== "data") return plain;
  const wrapped = wrapData(plain);
  return { ...wrapped, data: { data: wrapped["data"] } };
}

/** The reverse. A part with a tag, or with data that is not nested, is read as another form. */
export function fromProtoPart(part: Part): Part {
  const data = part["data"];
  const isProto = isJsonObject(data) && Object.keys(data).join() === "data" && !isTaggedPart(part);
  return toV1Part(isProto ? { ...part, data: data["data"] } : part);
}

function toTaggedPart(part: Part, tag: "kind" | "type"): Part {
  const plain = toV1Part(part);
  const content = contentOf(plain);
  if (content === undefined) return plain;
  const untagged = withoutMembers(plain, tag);
  if (content === "text") return { [tag]: "text", ...untagged };
  if (content === "data") return { [tag]: "data", ...wrapData(untagged) };
  return { [tag]: "file", ...sinkFile(untagged, { raw: "bytes", url: "uri", filename: "name" }) };
}

function isTaggedPart(part: Part): boolean {
  return DISCRIMINATORS.includes(part["kind"]) || DISCRIMINATORS.includes(part["type"]);
}

/** The content of a part in 1.0. Null means absent, except in data, where it is a value. */
function contentOf(part: Part): "text" | "file" | "data" | undefined {
  if (part["text"] != null) return "text";
  if (part["raw"] != null || part["url"] != null) return "file";
  return Object.hasOwn(part, "data") ? "data" : undefined;
}

function hasFile(part: Part): boolean {
  const file = part["file"];
  if (!isJsonObject(file) || contentOf(part) !== undefined) return false;
  const { raw, url } = renameMembers(file, FILE_NAMES);
  return raw !== undefined || url !== undefined;
}

/** Unknown members of a file stay in `file`; `sinkFile` puts them back. */
function liftFile(part: Part): Part {
  const file = renameMembers(part["file"] as JsonObject, FILE_NAMES);
  const known = Object.fromEntries(Object.entries(file).filter(([name]) => FILE_MEMBERS.includes(name)));
  const other = withoutMembers(file, ...FILE_MEMBERS);
  return {
    ...known,
    ...withoutMembers(part, "file"),
    ...(Object.keys(other).length === 0 ? {} : { file: other }),
  };
}

function sinkFile(
  part: Part,
  names: { readonly raw: string; readonly url: string; readonly filename: string },
): Part {
  const { file: other, raw, url, filename, mediaType, ...rest } = part;
  const known = definedMembers({
    [names.filename]: filename,
    mimeType: mediaType,
    [names.raw]: raw,
    [names.url]: url,
  });
  const file = isJsonObject(other) ? { ...other, ...known } : known;
  return { file, ...rest };
}

/** Older dialects allow only objects as data. */
function wrapData(part: Part): Part {
  if (isJsonObject(part["data"])) return part;
  const metadata = isJsonObject(part["metadata"]) ? part["metadata"] : {};
  return { ...part, data: { value: part["data"] }, metadata: { ...metadata, [WRAPPED]: true } };
}

function unwrapData(part: Part): Part {
  const { data, metadata } = part;
  if (!isJsonObject(metadata) || metadata[WRAPPED] !== true) return part;
  if (!isJsonObject(data) || !Object.hasOwn(data, "value")) return part;
  const kept = withoutMembers(metadata, WRAPPED);
  const unwrapped = { ...part, data: data["value"] };
  return Object.keys(kept).length === 0
    ? withoutMembers(unwrapped, "metadata")
    : { ...unwrapped, metadata: kept };
}
