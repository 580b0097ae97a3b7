package nftables

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// groupNFTables is NFNLGRP_NFTABLES, where the kernel tells about every change.
const groupNFTables = 7

// A Listener hears of changes of one table, whoever makes them. It may be told too often, and
// it may miss some when there are very many.
type Listener struct {
	// C tells that something changed. It is closed when nothing more can be heard.
	C <-chan struct{}
	f *os.File
}

// Listen listens until Close.
func Listen(table string) (*Listener, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1 << (groupNFTables - 1)}); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("bind", err)
	}
	c := make(chan struct{}, 1)
	l := &Listener{C: c, f: os.NewFile(uintptr(fd), "nftables")}
	go func() {
		defer close(c)
		buf := make([]byte, maxMessage)
		for {
			n, err := l.f.Read(buf)
			missed := errors.Is(err, unix.ENOBUFS)
			if err != nil && !missed {
				return
			}
			if missed || mentions(buf[:n], table) {
				select {
				case c <- struct{}{}:
				default: // told already
				}
			}
		}
	}()
	return l, nil
}

// Close ends the listener.
func (l *Listener) Close() { _ = l.f.Close() }

// mentions reports whether a datagram is about a table. What cannot be read may be.
func mentions(b []byte, table string) bool {
	list, err := answers(b)
	if err != nil {
		return true
	}
	for _, a := range list {
		_, body, err := a.split()
		if err != nil || a.typ>>8 != unix.NFNL_SUBSYS_NFTABLES || a.typ&0xff == unix.NFT_MSG_NEWGEN {
			continue
		}
		attrs, err := parse(body, maxAttrs)
		if err != nil {
			return true
		}
		for _, at := range attrs {
			if at.typ == unix.NFTA_TABLE_NAME && at.text() == table { // the same number in chains, rules and all else
				return true
			}
		}
	}
	return false
}
