package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// DeviceFlags are the flags that choose a device and its faults. Faults become
// options of the device name, which every program can write.
type DeviceFlags struct {
	Device string
	Seed   uint64 // of the faults
	MTU    PathMTU

	loss, reorder, dup, corrupt share
	delay                       time.Duration
}

// share is a flag's part of a whole: "5%" or "0.05".
type share string

func (s *share) String() string { return string(*s) }
func (*share) Type() string     { return "share" }

func (s *share) Set(text string) error {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if v == 1 && !percent {
		return errors.New("is it one percent or all? write 1% or 100%")
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return errors.New("want a share of all packets from 0 to 1, like 5% or 0.05")
	}
	*s = share(text)
	return nil
}

// PathMTU is a flag's path MTU in bytes.
type PathMTU int

func (m *PathMTU) String() string { return strconv.Itoa(int(*m)) }
func (*PathMTU) Type() string     { return "bytes" }

func (m *PathMTU) Set(text string) error {
	switch text {
	case "256", "512", "1024", "2048", "4096":
		n, _ := strconv.Atoi(text)
		*m = PathMTU(n)
		return nil
	}
	return errors.New("want 256, 512, 1024, 2048 or 4096")
}

// Add adds all the flags to a command.
func (f *DeviceFlags) Add(cmd *cobra.Command) {
	f.AddDevice(cmd)
	f.AddFaults(cmd)
	cmd.Flags().VarP(&f.MTU, "mtu", "m", "path MTU: 256, 512, 1024, 2048 or 4096 (default: the largest that fits)")
}

// AddFaults adds the flags of the faults only.
func (f *DeviceFlags) AddFaults(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(&f.loss, "loss", "lose this share of the packets sent from here, like 5% (soft devices)")
	flags.Var(&f.reorder, "reorder", "send this share of the packets late, like 10%")
	flags.Var(&f.dup, "dup", "send this share of the packets twice, like 1%")
	flags.Var(&f.corrupt, "corrupt", "invert one bit in this share of the packets, like 0.1%")
	flags.DurationVar(&f.delay, "delay", 0, "send every packet this much later, like 2ms")
	flags.Uint64Var(&f.Seed, "seed", 0, "seed of the faults; the same seed hits the same packets (default: chosen and printed)")
}

// AddDevice adds -d, --device only.
func (f *DeviceFlags) AddDevice(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.Device, "device", "d", "", "device: soft, soft:ADDRESS or a kernel device's name (default: $RDMASHIM_DEVICE, else soft)")
}

// anyFault says whether a fault was asked for.
func (f *DeviceFlags) anyFault() bool {
	return f.loss != "" || f.reorder != "" || f.dup != "" || f.corrupt != "" || f.delay != 0
}

// ChooseSeed picks a seed when faults are wanted and none was given, so that
// the run can be repeated.
func (f *DeviceFlags) ChooseSeed() {
	if f.anyFault() && f.Seed == 0 {
		f.Seed = uint64(rand.Uint32()) + 1
	}
}

// Options renders the faults as device options: "loss=5%&seed=7".
func (f *DeviceFlags) Options() string {
	var o []string
	add := func(key, value string) {
		if value != "" {
			o = append(o, key+"="+value)
		}
	}
	add("loss", string(f.loss))
	add("reorder", string(f.reorder))
	add("dup", string(f.dup))
	add("corrupt", string(f.corrupt))
	if f.delay != 0 {
		add("delay", f.delay.String())
	}
	if f.Seed != 0 {
		add("seed", strconv.FormatUint(f.Seed, 10))
	}
	if f.MTU != 0 {
		add("mtu", f.MTU.String())
	}
	return strings.Join(o, "&")
}

// Named is the device that was asked for, by flag or RDMASHIM_DEVICE, with its
// options; empty if none was.
func (f *DeviceFlags) Named() string {
	name := cmp.Or(f.Device, os.Getenv("RDMASHIM_DEVICE"))
	if name == "" {
		return ""
	}
	return WithOptions(name, f.Options())
}

// WithOptions appends options to a device name that may have some.
func WithOptions(name, options string) string {
	switch {
	case options == "":
		return name
	case strings.Contains(name, "?"):
		return name + "&" + options
	default:
		return name + "?" + options
	}
}

// SoftAt names the soft device on an address.
func SoftAt(a netip.Addr) string {
	a = a.Unmap()
	if a.Is6() {
		return fmt.Sprintf("soft:[%s]", a)
	}
	return "soft:" + a.String()
}
