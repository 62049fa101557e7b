/** The members that the load reads of a message that was read, leased or streamed. */
export interface InboxItem {
  readonly message_id: string;
  readonly message: { readonly subject: string };
  readonly lease?: { readonly id: string };
}
