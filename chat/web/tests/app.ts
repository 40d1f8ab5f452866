/** The parts of the page's state, for tests that load all of them anew. */
export * from "../src/connection";
export * from "../src/conversations";
export * from "../src/place";
export * from "../src/store/buds";
export * from "../src/store/list";
export * from "../src/store/open-conversation";
