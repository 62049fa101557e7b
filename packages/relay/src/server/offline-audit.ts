// The command line checks exports without a running relay. It may import the core only through the server.
export {
  anchorLine,
  eventFrom,
  eventLine,
  ExportedChain,
  type ExportReport,
  type NotedAnchor,
  notedProblem,
  verifyExport,
} from "../core/journal/exported-chain.ts";
