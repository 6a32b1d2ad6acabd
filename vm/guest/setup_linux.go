package guest

import (
	"archive/tar"
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// setup prepares the guest as the host asks and reports its steps.
func (g *helper) setup(ctx context.Context, s Setup) Done {
	var d Done
	step := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		d.Steps = append(d.Steps, text)
		g.log.printf("%s", text)
	}
	if err := g.prepare(ctx, s, step, &d); err != nil {
		step("failed: %v", err)
		d.Error = err.Error()
	}
	return d
}

func (g *helper) prepare(ctx context.Context, s Setup, step func(string, ...any), d *Done) error {
	g.env = s.Env
	for _, e := range s.Env {
		if name, value, ok := strings.Cut(e, "="); ok {
			os.Setenv(name, value)
		}
	}
	if s.Hostname != "" {
		if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
			return fmt.Errorf("set host name %s: %w", s.Hostname, err)
		}
	}
	if len(s.Load) > 0 {
		report, err := loadModules(s.Load...)
		step("%s", report)
		if err != nil {
			return fmt.Errorf("%w: the image was built without it (rdmashim vm build --module)", err)
		}
	}
	if err := os.MkdirAll(OutDir, 0o777); err != nil {
		return err
	}
	if s.Netdev != "" {
		if err := setupNetdev(s.Netdev, s.Address, step); err != nil {
			return fmt.Errorf("netdev %s: %w", s.Netdev, err)
		}
	}
	if s.Link == "" {
		return nil
	}
	if err := ensureLink(ctx, s.Link, s.Netdev, step); err != nil {
		return fmt.Errorf("link %s: %w", s.Link, err)
	}
	d.Link = s.Link
	return nil
}

// setupNetdev brings up the netdev that rxe shall use. Without a network card
// it is one end of a veth pair, whose other end (the name's last digit counted
// up by one) is free for a peer in a network namespace of its own.
func setupNetdev(name, address string, step func(string, ...any)) error {
	// No waiting for duplicate addresses: no other host is on these links.
	for _, n := range []string{"default", "all"} {
		os.WriteFile("/proc/sys/net/ipv6/conf/"+n+"/accept_dad", []byte("0"), 0)
	}
	link, err := netlink.LinkByName(name)
	if err != nil {
		peer := peerName(name)
		attrs := netlink.NewLinkAttrs()
		attrs.Name = name
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: peer}); err != nil {
			return fmt.Errorf("create with its peer %s: %w", peer, err)
		}
		step("netdev %s: one end of a veth pair, the other is %s", name, peer)
		if p, err := netlink.LinkByName(peer); err != nil {
			return err
		} else if err := netlink.LinkSetUp(p); err != nil {
			return fmt.Errorf("bring %s up: %w", peer, err)
		}
		if link, err = netlink.LinkByName(name); err != nil {
			return err
		}
	} else {
		step("netdev %s: a %s card", name, link.Type())
	}
	if address != "" {
		addr, err := netlink.ParseAddr(address)
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(link, addr); err != nil && err != unix.EEXIST {
			return fmt.Errorf("add address %s: %w", address, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("bring up: %w", err)
	}
	step("netdev %s: up with address %s", name, address)
	return nil
}

func peerName(name string) string {
	last := len(name) - 1
	if c := name[last]; c >= '0' && c < '9' {
		return name[:last] + string(c+1)
	}
	return name + "p"
}

// pull sends a tar of a directory.
func (g *helper) pull(p Pull) error {
	out := bufio.NewWriterSize(g.conn.Writer(KindStdout), MaxPayload)
	tw := tar.NewWriter(out)
	err := PackPath(tw, filepath.Clean(p.Dir), ".")
	if err == nil {
		err = tw.Close()
	}
	if ferr := out.Flush(); err == nil {
		err = ferr
	}
	return err
}
