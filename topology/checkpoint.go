package topology

import "context"

// A Checkpoint brings back what was there when it was made, unless it is committed: by
// itself when its window is over, whatever becomes of the program that made it, or at
// once. After a restart of the device inside the window, what was there before is there
// again. A checkpoint is ended once, by one of its methods.
type Checkpoint interface {
	// Commit keeps what was done since, durably.
	Commit(ctx context.Context) error
	// Rollback brings back what was there before.
	Rollback(ctx context.Context) error
}

// A Recoverer is implemented by topologies whose checkpoints outlive the program that made
// them. Recover rolls back every checkpoint that a program which is gone left open, and says
// what they were of. It is called before anything else is changed.
type Recoverer interface {
	Recover(ctx context.Context) ([]Resource, error)
}
