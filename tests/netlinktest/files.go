package netlinktest

import (
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"strings"
	"testing/fstest"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

// files is the file system of the present state.
type files struct{ k *Kernel }

func (f files) Open(name string) (fs.File, error)          { return f.now(name).Open(name) }
func (f files) ReadLink(name string) (string, error)       { return f.now(name).ReadLink(name) }
func (f files) Lstat(name string) (fs.FileInfo, error)     { return f.now(name).Lstat(name) }
func (f files) ReadDir(name string) ([]fs.DirEntry, error) { return f.now(name).ReadDir(name) }

// now makes the files; name is what is going to be looked at.
func (f files) now(name string) fstest.MapFS {
	k := f.k
	k.Lock()
	defer k.Unlock()
	m := fstest.MapFS{}
	for p, text := range k.Files {
		m[p] = &fstest.MapFile{Data: []byte(text)}
	}
	for p, target := range k.Symlinks {
		m[p] = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
	}
	for mod := range k.Modules {
		m["sys/module/"+mod+"/initstate"] = text("live")
	}
	crypto := "name         : sha256\n"
	if k.Modules["crc32_generic"] {
		crypto += "\nname         : crc32\ndriver       : crc32-generic\n"
	}
	m["proc/crypto"] = text(crypto)
	for _, l := range k.Links {
		dir := "sys/class/infiniband/" + l.Name
		if l.RXE {
			m[dir+"/parent"] = text(l.NetDev)
		}
		m[dir+"/ports/1/gids"] = &fstest.MapFile{Mode: fs.ModeDir | 0o555}
		if strings.HasSuffix(name, dir+"/ports/1/gids") && l.noGIDs > 0 {
			l.noGIDs--
			continue
		}
		if l.noGIDs == 0 {
			addGIDs(m, dir+"/ports/1", k.Dev(l.NetDev))
		}
	}
	return m
}

func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s + "\n")} }

// addGIDs makes a GID table as Linux fills rxe's: first the link-local address
// that follows from the MAC, then each address; empty entries behind.
func addGIDs(m fstest.MapFS, port string, d *netlinkmgr.NetDev) {
	if d == nil {
		return
	}
	var table []netip.Addr
	if mac, err := net.ParseMAC(d.MAC); err == nil {
		table = append(table, eui64(mac))
	}
	for _, a := range d.Addrs {
		if addr := netip.AddrFrom16(a.Prefix.Addr().As16()); len(table) == 0 || addr != table[0] {
			table = append(table, addr)
		}
	}
	for i, a := range table {
		m[fmt.Sprintf("%s/gids/%d", port, i)] = text(long(a))
		m[fmt.Sprintf("%s/gid_attrs/types/%d", port, i)] = text("RoCE v2")
		m[fmt.Sprintf("%s/gid_attrs/ndevs/%d", port, i)] = text(d.Name)
	}
	m[fmt.Sprintf("%s/gids/%d", port, len(table))] = text(long(netip.IPv6Unspecified()))
}

// long writes an address as sysfs does, in full.
func long(a netip.Addr) string {
	b := a.As16()
	var groups []string
	for i := 0; i < 16; i += 2 {
		groups = append(groups, fmt.Sprintf("%02x%02x", b[i], b[i+1]))
	}
	return strings.Join(groups, ":")
}

// eui64 is the link-local address of a MAC (RFC 4291, appendix A).
func eui64(mac net.HardwareAddr) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: mac[0] ^ 2, 9: mac[1], 10: mac[2], 11: 0xff, 12: 0xfe, 13: mac[3], 14: mac[4], 15: mac[5]})
}
