/** Notifications on a device, also while Trellis is closed. */
const push = {
  unable:
    "This browser cannot be notified while Trellis is closed. On an iPhone or iPad, add Trellis to the home screen first.",
  insecure: "Notifications need an encrypted address (https). Ask whoever runs Trellis.",
  blocked: "Your browser blocks notifications of this site. Allow them in its settings, and try again.",
  failed: "Your browser could not reach its push service. Try again in a moment, or use another browser.",
};

export default push;
