/** What the load looks at in a message that was shown, leased or streamed. */
export interface InboxItem {
  readonly message_id: string;
  readonly message: { readonly subject: string };
  readonly lease?: { readonly id: string };
}
