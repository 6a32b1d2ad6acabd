package ports

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/netip"
	"strconv"
	"strings"
)

// Socket is a row of /proc/net/udp.
type Socket struct {
	Local netip.AddrPort
	UID   int // of its maker
	Inode string
}

// Sockets lists the UDP sockets of the network namespace; known is false where
// the system does not tell. root is the system's root directory.
func Sockets(root fs.FS) (list []Socket, known bool) {
	dir := "proc/thread-self/net/" // a thread may be in a namespace of its own
	if _, err := fs.Stat(root, dir+"udp"); err != nil {
		dir = "proc/self/net/"
	}
	for _, name := range []string{"udp", "udp6"} {
		text, err := fs.ReadFile(root, dir+name)
		known = known || err == nil
		list = append(list, Parse(string(text))...)
	}
	return list, known
}

// Parse reads /proc/net/udp or udp6 (net/ipv4/udp.c: udp4_format_sock): an
// address is written as words of 32 bits in the machine's order. Other lines
// are skipped.
func Parse(text string) []Socket {
	var list []Socket
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 10 {
			continue
		}
		addr, port, _ := strings.Cut(f[1], ":")
		b, err := hex.DecodeString(addr)
		n, portErr := strconv.ParseUint(port, 16, 16)
		if err != nil || portErr != nil || len(b)%4 != 0 {
			continue
		}
		for i := 0; i < len(b); i += 4 {
			binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
		}
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			continue
		}
		uid, _ := strconv.Atoi(f[7])
		list = append(list, Socket{netip.AddrPortFrom(a.Unmap(), uint16(n)), uid, f[9]})
	}
	return list
}

// Takes reports whether the socket gets packets to an address and port.
func (s Socket) Takes(local netip.AddrPort) bool {
	a := s.Local.Addr()
	return s.Local.Port() == local.Port() && (a.IsUnspecified() || a == local.Addr().Unmap().WithZone(""))
}

// Process finds the process that has the socket, and its command's name. 0 is
// the kernel, or a process that this one may not look into.
func (s Socket) Process(root fs.FS) (pid int, name string) {
	link := "socket:[" + s.Inode + "]"
	entries, _ := fs.ReadDir(root, "proc")
	for _, p := range entries {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		fds, _ := fs.ReadDir(root, "proc/"+p.Name()+"/fd")
		for _, fd := range fds {
			if to, err := fs.ReadLink(root, "proc/"+p.Name()+"/fd/"+fd.Name()); err == nil && to == link {
				comm, _ := fs.ReadFile(root, "proc/"+p.Name()+"/comm")
				return pid, strings.TrimSpace(string(comm))
			}
		}
	}
	return 0, ""
}

// Holder describes the process that has local: "process 17 (server)", or its
// user where the process is hidden. "" when there is none or the system does
// not tell.
func Holder(root fs.FS, local netip.AddrPort) string {
	list, _ := Sockets(root)
	for _, s := range list {
		if !s.Takes(local) {
			continue
		}
		if pid, name := s.Process(root); pid != 0 {
			return fmt.Sprintf("process %d (%s)", pid, name)
		}
		if s.UID == 0 && s.Local.Addr().IsUnspecified() {
			return "the kernel, likely rdma_rxe"
		}
		return fmt.Sprintf("a process of user %d", s.UID)
	}
	return ""
}
