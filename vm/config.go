package vm

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Config describes the guests to boot and the command to run in them. The zero
// value of a field is its default.
type Config struct {
	// Command is the command that Run runs, looked up on the guest's PATH.
	Command Command

	Nodes  int // 1 (default) or 2, on a private link
	Memory int // MiB for each guest; default 256 and as much as Add needs
	CPUs   int // for each guest; default 2
	// Timeout is for everything after the guests have booted; default 10
	// minutes, negative: none. Time in which a busy host does not let the
	// guests run is not counted, here and in BootTimeout.
	Timeout time.Duration
	// BootTimeout is for booting, until rxe0 is up; default 3 minutes, which a
	// busy machine that emulates may need.
	BootTimeout time.Duration

	// Load lists kernel modules beyond rdma_rxe that are loaded before any
	// command, with those that they need: "nvme_rdma".
	Load []string

	Add    []Add    // files and directories to bring into the guests
	Out    string   // directory into which the files in the guest's /out are brought (two nodes: into node0 and node1 in it)
	Env    []string // environment of all commands, as NAME=VALUE
	NoLink bool     // make no rxe0

	Kernel  string // file of a kernel of one's own; needs Modules
	Modules string // directory of its modules, as /lib/modules/RELEASE
	Release string // version of Linux whose newest package boots, as "6.12"; default: the distribution's newest
	Image   string // file of an image that was built earlier; it must fit the kernel
	Source  string // directory of the project's module; default: found from the working directory
	QEMU    string // the QEMU program; default qemu-system-x86_64 on PATH
	Accel   string // "tcg" (software), "kvm", or "" (default): KVM if a guest was seen to boot with it

	// LogFile keeps the guest's log (two nodes: FILE.node0 and FILE.node1).
	// Without it the log is kept, and named, only when something went wrong.
	LogFile string
	// Log receives lines about the work under way.
	Log func(format string, args ...any)
}

// Command is a command to run in a guest.
type Command struct {
	Args   []string
	Env    []string  // in addition to Config.Env
	Dir    string    // working directory, made when it does not exist; default /
	Stdin  io.Reader // nil: empty
	Stdout io.Writer // nil: dropped
	Stderr io.Writer // nil: dropped
}

// Add names a file or directory of the host and where it goes in the guest. An
// ELF program that needs shared libraries brings them along.
type Add struct{ Host, Guest string }

// ParseAdd reads HOSTPATH[:GUESTPATH]. Without GUESTPATH it goes to where it is
// on the host.
func ParseAdd(s string) (Add, error) {
	host, guest, both := strings.Cut(s, ":")
	if host == "" || (both && !strings.HasPrefix(guest, "/")) {
		return Add{}, fmt.Errorf("%q is not HOSTPATH[:GUESTPATH] with an absolute GUESTPATH", s)
	}
	return Add{host, guest}, nil
}

// withDefaults checks a configuration and fills in what was left out.
func (c Config) withDefaults() (Config, error) {
	c.Nodes, c.CPUs = cmp.Or(c.Nodes, 1), cmp.Or(c.CPUs, 2)
	c.Timeout, c.BootTimeout = cmp.Or(c.Timeout, 10*time.Minute), cmp.Or(c.BootTimeout, 3*time.Minute)
	if c.Nodes != 1 && c.Nodes != 2 {
		return c, fmt.Errorf("%d nodes: 1 or 2 are possible", c.Nodes)
	}
	if c.CPUs < 1 || c.CPUs > 64 {
		return c, fmt.Errorf("%d CPUs: 1 to 64 are possible", c.CPUs)
	}
	if c.Memory < 0 || (c.Memory > 0 && c.Memory < 128) || c.Memory > 1<<20 {
		return c, fmt.Errorf("%d MiB of memory: a guest needs 128 or more", c.Memory)
	}
	if !slices.Contains([]string{"", "tcg", "kvm"}, c.Accel) {
		return c, fmt.Errorf("accel %q: tcg and kvm are possible", c.Accel)
	}
	for _, e := range slices.Concat(c.Env, c.Command.Env) {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
			return c, fmt.Errorf("environment %q is not NAME=VALUE", e)
		}
	}
	var err error
	if c.Load, err = moduleNames(c.Load); err != nil {
		return c, err
	}
	if c.Log == nil {
		c.Log = func(string, ...any) {}
	}
	return c, nil
}

// nodeAddress is a guest's on their private link.
func nodeAddress(node int) string { return fmt.Sprintf("10.77.0.%d", node+1) }

// LinkName is the name of each guest's rxe link.
const LinkName = "rxe0"

// linkNetdev is the netdev that it is on.
const linkNetdev = "eth0"

// nodeEnv is the environment of a node's commands.
func (c *Config) nodeEnv(node int) []string {
	env := []string{
		fmt.Sprintf("RDMASHIM_NODE=%d", node),
		"RDMASHIM_ADDR=" + nodeAddress(node),
		"RDMASHIM_OUT=/out",
	}
	if c.Nodes == 2 {
		env = append(env, "RDMASHIM_PEER="+nodeAddress(1-node))
	}
	if path := libraryPath(); len(c.Add) > 0 && len(path) > 0 {
		env = append(env, "LD_LIBRARY_PATH="+strings.Join(path, ":"))
	}
	return append(env, c.Env...)
}
