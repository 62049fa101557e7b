import type { CardSettings } from "./card-interfaces.ts";

type Json = Readonly<Record<string, unknown>>;

/** What a card asks of callers; an absent member asks for nothing. */
export interface CardSecurity {
  readonly securitySchemes?: Json;
  readonly securityRequirements?: readonly Json[];
}

const SCHEME_NAME = "relayKey";
const SCHEME: Json = {
  httpAuthSecurityScheme: {
    description: "A key of this relay; its operator makes them",
    scheme: "Bearer",
  },
};

/**
 * What the relay asks for, since it is the relay that is called. What the owner asks for holds at its own address, and
 * so is shown beside it only where callers are shown that address.
 */
export function cardSecurity({ hasKeys = false }: CardSettings, owner: CardSecurity = {}): CardSecurity {
  const schemes = { ...owner.securitySchemes, ...(hasKeys ? { [SCHEME_NAME]: SCHEME } : {}) };
  const theirs = owner.securityRequirements ?? [];
  const ours = hasKeys ? [{ schemes: { [SCHEME_NAME]: { list: [] } } }] : nothingBeside(theirs);
  const requirements = [...ours, ...theirs];
  return {
    ...(Object.keys(schemes).length === 0 ? {} : { securitySchemes: schemes }),
    ...(requirements.length === 0 ? {} : { securityRequirements: requirements }),
  };
}

/** That the relay asks for nothing has to be said once somebody else asks for something. */
function nothingBeside(theirs: readonly Json[]): readonly Json[] {
  return theirs.length === 0 ? [] : [{ schemes: {} }];
}
