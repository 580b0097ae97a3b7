package pi

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

// A socket is one that keeps a port of the machine.
type socket struct {
	udp    bool
	at     netip.AddrPort
	uid    uint32
	inode  uint32
	cgroup uint64 // id of the control group that it was made in; 0: not known
}

// The kernel's answer about a socket: where things are in struct inet_diag_msg.
const (
	tcpListen   = 10
	diagAddress = 8
	diagUID     = 64
	diagInode   = 68
	diagLength  = 72
	diagCgroup  = 21 // an attribute

	netlinkHeader   = 16
	attributeHeader = 4
)

// sockets returns what listens on TCP, and all of UDP. The kernel is asked by netlink:
// it tells the control group of a socket, which everybody may know. /proc tells only
// those who may trace its owner which process has it.
func sockets() ([]socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}); err != nil {
		return nil, err
	}
	var all []socket
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		for _, udp := range []bool{false, true} {
			if err := unix.Sendto(fd, askSockets(family, udp), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
				return nil, err
			}
			for done := false; !done; {
				buf := make([]byte, 1<<16)
				n, _, err := unix.Recvfrom(fd, buf, 0)
				if errors.Is(err, unix.EINTR) {
					continue
				} else if err != nil {
					return nil, err
				}
				var some []socket
				if some, done, err = decodeSockets(buf[:n], udp); err != nil {
					return nil, err
				}
				all = append(all, some...)
			}
		}
	}
	return all, nil
}

// askSockets is a request for all sockets of a family and protocol.
func askSockets(family byte, udp bool) []byte {
	b := make([]byte, netlinkHeader+56) // struct inet_diag_req_v2
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	b[netlinkHeader], b[netlinkHeader+1] = family, unix.IPPROTO_TCP
	states := uint32(1 << tcpListen)
	if udp {
		b[netlinkHeader+1], states = unix.IPPROTO_UDP, ^uint32(0)
	}
	binary.NativeEndian.PutUint32(b[netlinkHeader+4:], states)
	return b
}

var errNetlink = errors.New("the kernel's answer about sockets makes no sense")

// decodeSockets reads one datagram of the answer. Done: there is no further one.
func decodeSockets(b []byte, udp bool) (some []socket, done bool, err error) {
	for len(b) >= netlinkHeader {
		n := int(binary.NativeEndian.Uint32(b))
		if n < netlinkHeader || n > len(b) {
			return some, true, errNetlink
		}
		body := b[netlinkHeader:n]
		switch binary.NativeEndian.Uint16(b[4:]) {
		case unix.NLMSG_DONE:
			return some, true, nil
		case unix.NLMSG_ERROR:
			if len(body) < 4 {
				return some, true, errNetlink
			}
			return some, true, unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
		case unix.SOCK_DIAG_BY_FAMILY:
			if len(body) < diagLength {
				return some, true, errNetlink
			}
			some = append(some, decodeSocket(body, udp))
		}
		b = b[min(len(b), (n+3)&^3):]
	}
	if len(b) > 0 {
		return some, true, errNetlink
	}
	return some, false, nil
}

func decodeSocket(body []byte, udp bool) socket {
	addr := netip.AddrFrom16([16]byte(body[diagAddress : diagAddress+16])).Unmap()
	if body[0] == unix.AF_INET {
		addr = netip.AddrFrom4([4]byte(body[diagAddress : diagAddress+4]))
	}
	s := socket{
		udp: udp, at: netip.AddrPortFrom(addr, binary.BigEndian.Uint16(body[4:])),
		uid: binary.NativeEndian.Uint32(body[diagUID:]), inode: binary.NativeEndian.Uint32(body[diagInode:]),
	}
	for a := body[diagLength:]; len(a) >= attributeHeader; {
		n := int(binary.NativeEndian.Uint16(a))
		if n < attributeHeader || n > len(a) {
			break
		}
		if binary.NativeEndian.Uint16(a[2:]) == diagCgroup && n >= attributeHeader+8 {
			s.cgroup = binary.NativeEndian.Uint64(a[attributeHeader:])
		}
		a = a[min(len(a), (n+3)&^3):]
	}
	return s
}
