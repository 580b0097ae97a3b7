package pi

import (
	"encoding/binary"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// tellCountry tells the kernel, over generic netlink, which country the radios are in, as iw reg
// set does. A kernel without radios knows no such family: an error.
func tellCountry(country string) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_GENERIC)
	if err != nil {
		return fmt.Errorf("cannot open netlink: %w", err)
	}
	defer unix.Close(fd)
	limit := unix.NsecToTimeval(int64(2 * time.Second))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return fmt.Errorf("cannot set a time limit: %w", err)
	}
	family, err := genericFamily(fd, "nl80211")
	if err != nil {
		return err
	}
	_, err = generic(fd, family, unix.NL80211_CMD_REQ_SET_REG, unix.NL80211_ATTR_REG_ALPHA2, country)
	return err
}

// genericFamily asks for the number of a family of generic netlink.
func genericFamily(fd int, name string) (uint16, error) {
	answer, err := generic(fd, unix.GENL_ID_CTRL, unix.CTRL_CMD_GETFAMILY, unix.CTRL_ATTR_FAMILY_NAME, name)
	if err != nil {
		return 0, fmt.Errorf("the kernel has no %s: %w", name, err)
	}
	return familyID(answer)
}

const genericHead = unix.SizeofNlMsghdr + 4 // and struct genlmsghdr

// familyID finds the number of a family in an answer about it.
func familyID(answer []byte) (uint16, error) {
	for len(answer) >= 4 {
		n, typ := int(binary.NativeEndian.Uint16(answer)), binary.NativeEndian.Uint16(answer[2:])
		if n < 4 || n > len(answer) {
			break
		}
		if typ == unix.CTRL_ATTR_FAMILY_ID && n >= 6 {
			return binary.NativeEndian.Uint16(answer[4:]), nil
		}
		answer = answer[min((n+3)&^3, len(answer)):]
	}
	return 0, fmt.Errorf("the answer of the kernel names no family")
}

// generic sends one command with one text, and returns the attributes of the answer.
func generic(fd int, family uint16, command uint8, attribute uint16, text string) ([]byte, error) {
	value := append([]byte(text), 0)
	b := make([]byte, genericHead+4+(len(value)+3)&^3)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], family)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	binary.NativeEndian.PutUint32(b[8:], 1)
	b[unix.SizeofNlMsghdr], b[unix.SizeofNlMsghdr+1] = command, 1
	binary.NativeEndian.PutUint16(b[genericHead:], uint16(4+len(value)))
	binary.NativeEndian.PutUint16(b[genericHead+2:], attribute)
	copy(b[genericHead+4:], value)
	if err := unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, fmt.Errorf("cannot ask the kernel: %w", err)
	}
	var attributes []byte
	in := make([]byte, 8192)
	for {
		n, _, err := unix.Recvfrom(fd, in, 0)
		if err != nil {
			return nil, fmt.Errorf("the kernel does not answer: %w", err)
		}
		for m := in[:n]; len(m) >= unix.SizeofNlMsghdr; {
			size := int(binary.NativeEndian.Uint32(m))
			if size < unix.SizeofNlMsghdr || size > len(m) {
				return nil, fmt.Errorf("the kernel answers what nobody can read")
			}
			switch body := m[unix.SizeofNlMsghdr:size]; {
			case binary.NativeEndian.Uint16(m[4:]) == unix.NLMSG_ERROR && len(body) >= 4:
				if code := int32(binary.NativeEndian.Uint32(body)); code != 0 {
					return nil, unix.Errno(-code)
				}
				return attributes, nil // it is the last one
			case size > genericHead:
				attributes = append([]byte(nil), m[genericHead:size]...)
			}
			m = m[min((size+3)&^3, len(m)):]
		}
	}
}
