//go:build amd64 || arm64

package run

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/preload"
	"github.com/rdmashim/rdmashim/kshim/supervise"
	"github.com/rdmashim/rdmashim/kshim/supervise/broker"
	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
	"github.com/rdmashim/rdmashim/uapi/minikernel"
)

// supervised runs a program whose calls are answered by a kernel in this
// command, or at a server, and ends as the program does.
func supervised(args, devices []string, server string) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	if os.Getenv(under) != "" && !broker.Again() {
		fmt.Fprintln(os.Stderr, "rdmashim: on the kernel of the run around this one, with its devices")
		return syscall.Exec(path, args, os.Environ())
	}
	c := broker.Config{Path: path, Args: args, Window: supervise.Window, Server: server, Env: append(os.Environ(), under+"=1")}
	if server == "" {
		c.Kernel = func(l *notif.Listener, memory broker.Memory) error { return serve(l, memory, devices) }
	}
	status, err := broker.Run(c)
	if err != nil {
		return fmt.Errorf("run %s: %w", args[0], err)
	}
	status.Exit()
	return nil
}

// serve answers the calls of a program and of all that it starts.
func serve(l *notif.Listener, memory broker.Memory, names []string) error {
	machine := minikernel.Machine()
	devices := preload.NewDevices(machine, names)
	k, err := supervise.New(supervise.Config{Machine: machine, Devices: devices})
	if err != nil {
		return err
	}
	return cmp.Or(k.Serve(l, memory), k.Close(), devices.Remove())
}
