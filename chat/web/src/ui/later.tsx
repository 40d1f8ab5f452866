import { type FunctionComponent, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { toast } from "../app";
import common from "../texts/common";

export type Later<Props> = FunctionComponent<Props> & {
  /** Fetch it before it is shown, so that it is there at once. */
  loadAhead: () => void;
};

/** A part of the page whose code comes when it is first shown; the first load of the page goes without it. */
export function later<Props extends object>(load: () => Promise<FunctionComponent<Props>>): Later<Props> {
  let loaded: FunctionComponent<Props> | undefined;
  const fetched = async () => {
    loaded ??= await load();
  };
  const Component: Later<Props> = (props) => {
    const [, setLoaded] = useState(loaded !== undefined);
    useEffect(() => {
      // Also where it came between the drawing and this.
      fetched()
        .then(() => setLoaded(true))
        .catch(() => {
          toast(common.offline, "bad");
          if ("onClose" in props) (props.onClose as () => void)();
        });
    }, []);
    return loaded ? h(loaded, props) : null;
  };
  // If it fails, whoever needs it asks again, and is told.
  Component.loadAhead = () => void fetched().catch(() => undefined);
  return Component;
}
