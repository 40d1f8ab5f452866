import { type FunctionComponent, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import common from "../texts/common";
import shell from "../texts/shell";
import { fetchPart, whenBack } from "../ui/parts";
import { toast } from "./toasts";

export type Later<Props> = FunctionComponent<Props> & {
  /** Fetch it before it is shown, so that it is there at once. */
  loadAhead: () => void;
};

/** Tell that a part did not come. Where only a new load of the page can bring it, what is typed is kept. */
export function tellMissing(): void {
  if (!navigator.onLine) toast(common.offline, "bad");
  else toast(common.partMissing, "bad", { label: shell.reload, run: () => location.reload() });
}

/**
 * A part of the page whose code comes when it is first shown; the first load of the page goes without it.
 * Until then `Meanwhile` stands in its place, if there is one. What is kept in the browser (`isKept`) needs no
 * connection.
 */
export function later<Props extends object>(
  load: () => Promise<FunctionComponent<Props>>,
  { Meanwhile, isKept }: { Meanwhile?: FunctionComponent; isKept?: boolean } = {},
): Later<Props> {
  let loaded: FunctionComponent<Props> | undefined;
  const fetched = async () => {
    loaded ??= await fetchPart(load, isKept);
  };
  const Component: Later<Props> = (props) => {
    const [, setLoaded] = useState(loaded !== undefined);
    useEffect(() => {
      let stop: () => void = () => undefined;
      // Also where it came between the drawing and this.
      const show = () =>
        fetched()
          .then(() => setLoaded(true))
          .catch(() => {
            tellMissing();
            if ("onClose" in props) (props.onClose as () => void)();
            else stop = whenBack(show);
          });
      void show();
      return () => stop();
    }, []);
    return loaded ? h(loaded, props) : Meanwhile ? <Meanwhile /> : null;
  };
  // If it fails, whoever needs it asks again, and is told.
  Component.loadAhead = () => void fetched().catch(() => undefined);
  return Component;
}
