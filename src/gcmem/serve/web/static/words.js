// Who may give their word: whether a memory is outdated, and whether it must stay.

const UNTRUSTED = 0;

export class Words {
  caller = {};

  /** Whether the server would take a word about these chunks from this key, as far as it is known. */
  maySay(...items) {
    const { read_only: isReadOnly, untrusted: isUntrusted } = this.caller;
    return !isReadOnly && !(isUntrusted && items.some((item) => item.trust > UNTRUSTED));
  }

  mayPin() {
    return !this.caller.read_only && !this.caller.untrusted;
  }
}
