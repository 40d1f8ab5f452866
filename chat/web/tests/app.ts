/** The parts of the page's state, for tests that load all of them anew. */
export * from "../src/app/connection";
export * from "../src/app/place";
export * from "../src/store/buds";
export * from "../src/store/conversations";
export * from "../src/store/list";
export * from "../src/store/open-conversation";
