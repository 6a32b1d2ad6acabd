//go:build amd64 || arm64

package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/peercred"
	"github.com/rdmashim/rdmashim/kshim/preload"
	"github.com/rdmashim/rdmashim/kshim/privatefile"
	"github.com/rdmashim/rdmashim/kshim/supervise"
	"github.com/rdmashim/rdmashim/kshim/supervise/broker"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi/minikernel"
)

// serveCommand is rdmashim kernel serve.
func serveCommand() *cobra.Command {
	var devices []string
	var faults cli.DeviceFlags
	cmd := &cobra.Command{
		Use:   "serve [SOCKET]",
		Short: "Be a mini kernel for all programs of the user that name its socket",
		Long: `Be one mini kernel, with one set of devices, for any number of programs:
rdmashim run --kernel SOCKET -- PROGRAM has a program's system calls answered
here. They meet on rxe0, at one address, whatever language they are written in.

Programs of the same user are served and no others. Without SOCKET it is
kernel.sock in the user's run-time directory. The command ends with SIGINT or
SIGTERM; programs that still run then find no device.`,
		Example: `  rdmashim kernel serve /tmp/k.sock
  rdmashim run --kernel /tmp/k.sock -- ibv_devinfo
  rdmashim kernel --attach /tmp/k.sock`,
		Args: cli.MaxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			devices, err := faults.ForPrograms(devices, preload.CheckDevice)
			if err != nil {
				return err
			}
			path, err := socketPath(args)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), path, devices, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringArrayVarP(&devices, "device", "d", nil, "a soft device, soft or soft:ADDRESS with options; may be repeated")
	faults.AddFaults(cmd)
	return cmd
}

// socketPath is the server's socket.
func socketPath(args []string) (string, error) {
	if len(args) == 1 {
		return filepath.Abs(args[0])
	}
	home, err := privatefile.OpenDir()
	if err != nil {
		return "", err
	}
	defer home.Close()
	return filepath.Join(home.Name(), "kernel.sock"), nil
}

// consoleSuffix is behind the socket's name in that of its console.
const consoleSuffix = ".console"

// server is a mini kernel with its sockets.
type server struct {
	kernel *supervise.Kernel
	log    io.Writer
}

// serve is the command behind its arguments.
func serve(ctx context.Context, path string, names []string, log io.Writer) error {
	machine := minikernel.Machine()
	devices := preload.NewDevices(machine, names)
	if err := devices.Bind(); err != nil {
		return err
	}
	defer devices.Remove()
	k, err := supervise.New(supervise.Config{Machine: machine, Devices: devices})
	if err != nil {
		return err
	}
	defer k.Abandon()
	s := &server{kernel: k, log: log}
	programs, err := listen("unixpacket", path)
	if err != nil {
		return err
	}
	defer programs.Close()
	consoles, err := listen("unix", path+consoleSuffix)
	if err != nil {
		return err
	}
	defer consoles.Close()
	fmt.Fprintf(log, "rdmashim: rdmashim run --kernel %s -- PROGRAM\n", path)
	go s.accept(programs, s.program)
	go s.accept(consoles, s.console)
	<-ctx.Done()
	return nil // the programs' keepers take over
}

// listen listens at a path for programs of this user. A socket that nobody
// listens at is removed first.
func listen(network, path string) (*net.UnixListener, error) {
	addr := &net.UnixAddr{Name: path, Net: network}
	if c, err := net.DialUnix(network, nil, addr); err == nil {
		c.Close()
		return nil, fmt.Errorf("a kernel serves at %s already: %w", path, syscall.EADDRINUSE)
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		_ = os.Remove(path)
	}
	old := unix.Umask(0o177)
	defer unix.Umask(old)
	return net.ListenUnix(network, addr)
}

// accept serves connections of this user until the listener is closed.
func (s *server) accept(l *net.UnixListener, serve func(*net.UnixConn)) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return
		}
		if _, uid, err := peercred.Of(c); err != nil || uid != os.Geteuid() {
			c.Close()
			continue
		}
		go serve(c)
	}
}

// program answers the calls of one command's programs.
func (s *server) program(c *net.UnixConn) {
	f, err := c.File()
	c.Close()
	if err != nil {
		return
	}
	defer f.Close()
	l, memory, err := broker.Attach(int(f.Fd()))
	if err != nil {
		return
	}
	defer l.Close()
	if err := s.kernel.Serve(l, memory); err != nil {
		fmt.Fprintf(s.log, "rdmashim: a program is served no longer: %v\n", err)
	}
}

// console carries out the lines of a user of --attach. Each answer is what the
// command prints, a zero byte, its error or nothing, and another.
func (s *server) console(conn *net.UnixConn) {
	defer conn.Close()
	c := newConsole(conn)
	c.server = s.kernel
	defer c.end()
	answers(c, conn)
}

// attach is the other end: it has a server carry out lines.
func attach(path string, in lines, out io.Writer) error {
	conn, err := net.Dial("unix", path+consoleSuffix)
	if err != nil {
		return fmt.Errorf("no kernel serves at %[1]s, start one by rdmashim kernel serve %[1]s: %[2]w", path, err)
	}
	defer conn.Close()
	return relay(conn, in, out)
}

// ps lists the programs of a server.
func (c *console) ps(*args) error {
	if c.server == nil {
		return fmt.Errorf("this kernel serves no programs; attach to one of rdmashim kernel serve: %w", syscall.ESRCH)
	}
	c.printf("%8s %-16s %5s %4s %4s %4s %4s %5s %s\n", "PID", "NAME", "FILES", "PD", "CQ", "QP", "MR", "CM_ID", "OPEN")
	for _, p := range c.server.Programs() {
		o := p.Objects
		c.printf("%8d %-16s %5d %4d %4d %4d %4d %5d %s\n", p.PID, p.Name, len(p.Files), o["pd"], o["cq"], o["qp"], o["mr"], o["cm_id"],
			strings.Join(p.Files, " "))
	}
	return nil
}
