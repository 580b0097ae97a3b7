package nftables

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	patience   = 10 * time.Second // with one question or one transaction
	maxMessage = 256 << 10        // of one receive; the kernel cuts dumps to fit
	sendBuffer = 4 << 20          // of one transaction
)

// ErrNoNFTables says that the kernel has no nftables.
var ErrNoNFTables = errors.New("the kernel has no nftables (nf_tables)")

// A conn is a netlink socket. It is opened for one purpose and closed again.
type conn struct {
	fd    int
	seq   uint32
	buf   []byte
	until time.Time
}

func dial(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EAFNOSUPPORT) {
		return nil, ErrNoNFTables
	}
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	c := &conn{fd: fd, buf: make([]byte, maxMessage), until: time.Now().Add(patience)}
	if d, ok := ctx.Deadline(); ok && d.Before(c.until) {
		c.until = d
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		c.close()
		return nil, os.NewSyscallError("bind", err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_CAP_ACK, 1) // errors need not repeat the question
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer)
	}
	return c, nil
}

func (c *conn) close() { _ = unix.Close(c.fd) }

// message appends a message of nftables, with the number of its sequence.
func (c *conn) message(b []byte, typ, flags uint16, family uint8, attrs []byte) []byte {
	return c.raw(b, unix.NFNL_SUBSYS_NFTABLES<<8|typ, flags, family, 0, attrs)
}

func (c *conn) raw(b []byte, typ, flags uint16, family uint8, resource uint16, attrs []byte) []byte {
	c.seq++
	b = binary.NativeEndian.AppendUint32(b, uint32(unix.NLMSG_HDRLEN+4+len(attrs)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = binary.NativeEndian.AppendUint16(b, flags|unix.NLM_F_REQUEST)
	b = binary.NativeEndian.AppendUint32(b, c.seq)
	b = binary.NativeEndian.AppendUint32(b, 0)
	b = append(b, family, 0) // version 0
	b = binary.BigEndian.AppendUint16(b, resource)
	return append(b, attrs...)
}

func (c *conn) send(b []byte) error {
	return os.NewSyscallError("send", unix.Sendto(c.fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
}

// An answer is one message of the kernel.
type answer struct {
	typ, flags uint16
	seq        uint32
	body       []byte // valid until the next receive
}

// receive returns the messages of one datagram.
func (c *conn) receive() ([]answer, error) {
	for {
		left := time.Until(c.until)
		if left <= 0 {
			return nil, fmt.Errorf("no answer of the kernel about nftables: %w", context.DeadlineExceeded)
		}
		tv := unix.NsecToTimeval(max(left, time.Millisecond).Nanoseconds())
		if err := unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
			return nil, os.NewSyscallError("setsockopt", err)
		}
		n, _, flags, from, err := unix.Recvmsg(c.fd, c.buf, nil, 0)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if err != nil {
			return nil, os.NewSyscallError("receive", err)
		}
		if sa, ok := from.(*unix.SockaddrNetlink); !ok || sa.Pid != 0 {
			continue // not the kernel
		}
		if flags&unix.MSG_TRUNC != 0 {
			return nil, errors.New("cannot read an answer about nftables: it is too long")
		}
		return answers(c.buf[:n])
	}
}

// answers splits a datagram.
func answers(b []byte) ([]answer, error) {
	var out []answer
	for len(b) > 0 {
		if len(b) < unix.NLMSG_HDRLEN {
			return nil, errAttr
		}
		n := int(binary.NativeEndian.Uint32(b))
		if n < unix.NLMSG_HDRLEN || n > len(b) {
			return nil, errAttr
		}
		out = append(out, answer{binary.NativeEndian.Uint16(b[4:]), binary.NativeEndian.Uint16(b[6:]), binary.NativeEndian.Uint32(b[8:]), b[unix.NLMSG_HDRLEN:n]})
		b = b[min(align(n), len(b)):]
	}
	return out, nil
}

// failure is the error that an answer says, if it says one.
func (a answer) failure() error {
	if len(a.body) < 4 {
		return errAttr
	}
	if code := int32(binary.NativeEndian.Uint32(a.body)); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}

// split returns what is behind the header of nftables, and the state of the rules that the answer is of.
func (a answer) split() (generation uint16, attrs []byte, err error) {
	if len(a.body) < 4 {
		return 0, nil, errAttr
	}
	return binary.BigEndian.Uint16(a.body[2:]), a.body[4:], nil
}

// errAgain says that the rules were changed while they were read.
var errAgain = errors.New("the rules of nftables change all the time: they could not be read")

// ask sends a question, and calls each with every answer to it.
func (c *conn) ask(typ, flags uint16, attrs []byte, each func(generation uint16, attrs []byte) error) error {
	if err := c.send(c.message(nil, typ, flags, unix.NFPROTO_INET, attrs)); err != nil {
		return err
	}
	asked := c.seq
	for {
		got, err := c.receive()
		if err != nil {
			return err
		}
		for _, a := range got {
			switch {
			case a.seq != asked:
				continue
			case a.flags&unix.NLM_F_DUMP_INTR != 0:
				return errAgain
			case a.typ == unix.NLMSG_DONE:
				return a.failure()
			case a.typ == unix.NLMSG_ERROR:
				return a.failure()
			case a.typ>>8 != unix.NFNL_SUBSYS_NFTABLES:
				return fmt.Errorf("cannot read an answer about nftables: it has the type %#x", a.typ)
			}
			generation, body, err := a.split()
			if err == nil {
				err = each(generation, body)
			}
			if err != nil || flags&unix.NLM_F_DUMP == 0 {
				return err
			}
		}
	}
}

// transact does all of a transaction, or nothing of it.
func (c *conn) transact(messages func(add func(typ, flags uint16, attrs []byte))) error {
	b := c.raw(nil, unix.NFNL_MSG_BATCH_BEGIN, 0, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES, nil)
	last := 0
	messages(func(typ, flags uint16, attrs []byte) {
		last = len(b)
		b = c.message(b, typ, flags, unix.NFPROTO_INET, attrs)
	})
	// Errors are always told; that nothing failed is told because the last one asks for it.
	binary.NativeEndian.PutUint16(b[last+6:], binary.NativeEndian.Uint16(b[last+6:])|unix.NLM_F_ACK)
	asked := c.seq
	b = c.raw(b, unix.NFNL_MSG_BATCH_END, 0, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES, nil)
	if err := c.send(b); err != nil {
		return err
	}
	for {
		got, err := c.receive()
		if err != nil {
			return err
		}
		for _, a := range got {
			if a.typ != unix.NLMSG_ERROR {
				continue
			}
			if err := a.failure(); err != nil || a.seq == asked {
				return err
			}
		}
	}
}
