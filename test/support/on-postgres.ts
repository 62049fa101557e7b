/** `node --import` of this file runs the relays of a test on PostgreSQL. */
process.env["TEST_STORE"] = "postgres";
