// Package store is the device's own books on disk: which intent was accepted
// last, who owns which resource and what allowed its last change, what was begun
// and not ended, which operations were burnt, the last good version of each
// manifest, receipts, and backups of what was replaced. It decides nothing and knows no score, no topology and no
// network; specs are bytes to it.
//
// Promises, each held by a test that stops the store after every single step
// or damages every file:
//
//   - What a method acknowledged survives a power cut at any later instant.
//   - Ownership and begin of an action, and the notes that come with it, are one
//     durable write, before anything of the device is touched.
//   - Open never fails because a file is empty, cut, zeroed, flipped or gone.
//     It rebuilds from the previous copy and says in [Recovered] what it could
//     not; an empty file never means "nothing owned".
//   - A directory written by a newer version is never altered. One written by
//     an earlier version is read, and copied as it was before it is altered.
//   - Open writes nothing into an existing directory, and nothing is written
//     when nothing changes.
//
// # Map of the state directory
//
// Files are 0600 and folders 0700. README.md explains the formats.
//
//	ledger.0 ledger.1      snapshots of the ledger: the newest and the one before
//	journal.0 journal.1    every change since the snapshot of the same number
//	intent/NAME.0 NAME.1   the last accepted envelope of NAME and the one before
//	good/NAME.0 NAME.1     the good version of manifest NAME and the one before
//	receipts/FILE          a receipt of something that was done
//	backups/FILE           content that was replaced, as it was
//	backups/FILE.json      where it belongs: path, mode, owner, digest
//	asked/FILE             what a command on the device was asked for, for the audit
//	v1/                    the state as format 1 left it, kept at the upgrade
//	*.damaged              a damaged file as it was found, kept for inspection
//	.continuo-*            a file being written; removed at the next start
package store
