package main

import (
	"fmt"
	"io/fs"
	"log"
	"net"
	"os"
	"time"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	gonfs "github.com/willscott/go-nfs"

	"github.com/rdmashim/rdmashim/tests/nfs/xprt"
	"github.com/rdmashim/rdmashim/uapi"
)

// mountPort is the port of the mount protocol, which clients use by TCP.
const mountPort = "20048"

// mountOptions is how Linux mounts what an address exports: the options of
// mount(2).
func mountOptions(address string) string {
	return fmt.Sprintf("vers=3,proto=rdma,port=%d,mountproto=tcp,mountvers=3,mountport=%s,nolock,addr=%s,mountaddr=%[3]s", xprt.Port, mountPort, address)
}

// export serves a directory by NFS over RDMA at xprt.Port of a device, and its
// mount protocol by TCP at mountPort of the same address. ready is called when
// both listen. It returns when either fails.
func export(device *uapi.Device, dir string, ready func(address string)) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := device.QueryDevice()
	if err != nil {
		return err
	}
	address := info.Address.Addr().String()
	tcp, err := net.Listen("tcp", net.JoinHostPort(address, mountPort))
	if err != nil {
		return err
	}
	defer tcp.Close()
	rdma, err := xprt.Listen(device, fmt.Sprint(":", xprt.Port), log.Printf)
	if err != nil {
		return err
	}
	defer rdma.Close()
	d := directory{osfs.New(dir, osfs.WithBoundOS()), root}
	h := newHandles(d)
	failed := make(chan error, 2)
	for _, l := range []net.Listener{tcp, rdma} {
		go func() { failed <- gonfs.Serve(l, h) }()
	}
	ready(address)
	return <-failed
}

// directory is what is exported; nothing outside of it is reached, also not by
// links. Owners stay as they are: all files are the server's user's.
type directory struct {
	billy.Filesystem
	root *os.Root
}

func (d directory) Chmod(name string, mode fs.FileMode) error { return d.root.Chmod(name, mode) }
func (d directory) Lchown(string, int, int) error             { return nil }
func (d directory) Chown(string, int, int) error              { return nil }
func (d directory) Chtimes(name string, accessed, modified time.Time) error {
	return d.root.Chtimes(name, accessed, modified)
}
