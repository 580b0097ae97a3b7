package main

import (
	"os"
	"syscall"
)

// elsewhere makes temporary directories appear below dir and new files private to their owner, until it is undone.
func elsewhere(dir string) (undo func()) {
	before, was := os.Getenv("TMPDIR"), syscall.Umask(0o077)
	_ = os.Setenv("TMPDIR", dir)
	return func() {
		syscall.Umask(was)
		_ = os.Setenv("TMPDIR", before)
	}
}
