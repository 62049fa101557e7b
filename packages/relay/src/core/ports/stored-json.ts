declare const stored: unique symbol;

/** The text of a stored value. Digests and hashes cover this very text, so it is kept and never written anew. */
export type StoredJson = string & { readonly [stored]: true };
