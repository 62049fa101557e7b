import { type ConfigSources, SettingReader } from "./setting-reader.ts";
import { RELAY_URL, SETTINGS } from "./settings.ts";

/** What a program needs to talk to a relay. */
export interface ClientConfig {
  readonly url: string;
  readonly apiKey: string | undefined;
}

export function loadClientConfig(sources: ConfigSources): ClientConfig {
  // The address is not taken from .env: a directory that came from somebody else must not decide where
  // our mail and our key go.
  const trusted = new SettingReader({ ...sources, dotenv: {} });
  return Object.freeze({
    url: trusted.read(RELAY_URL),
    apiKey: new SettingReader(sources).read(SETTINGS.apiKey),
  });
}
