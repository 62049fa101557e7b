// An export is checked where no relay runs. The command line knows the core only through the server,
// so it comes by here.
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
