import { type FunctionComponent, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { toast } from "../app";
import common from "../texts/common";

/** A part of the page whose code comes when it is first shown; the first load of the page goes without it. */
export function later<Props extends object>(
  load: () => Promise<FunctionComponent<Props>>,
): FunctionComponent<Props> {
  let loaded: FunctionComponent<Props> | undefined;
  return (props) => {
    const [, setLoaded] = useState(loaded !== undefined);
    useEffect(() => {
      if (loaded) return;
      load()
        .then((component) => {
          loaded = component;
          setLoaded(true);
        })
        .catch(() => {
          toast(common.offline, "bad");
          if ("onClose" in props) (props.onClose as () => void)();
        });
    }, []);
    return loaded ? h(loaded, props) : null;
  };
}
