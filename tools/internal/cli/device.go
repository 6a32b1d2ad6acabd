package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/kshim/refuse"
	"github.com/rdmashim/rdmashim/uapi"
)

// DeviceFlags are the flags that choose a device and its faults. Faults become
// options of the device name, which every program can write.
type DeviceFlags struct {
	Device string
	Seed   uint64 // of the faults
	MTU    Option

	faults [6]Option
}

// Option is a flag that becomes an option of the device name, by whose rules
// its text is checked.
type Option struct {
	Text      string
	key, kind string
	many      bool // it may be given again, and adds to what is there
}

// String and Type are as pflag wants them.
func (o *Option) String() string { return o.Text }
func (o *Option) Type() string   { return o.kind }

// Set takes the option's text. Rules of calls are of all devices, and of
// programs that this one starts.
func (o *Option) Set(text string) error {
	if o.many {
		packets, err := takeCallRules(text)
		if err != nil || packets == "" {
			return err
		}
		text = refuse.Join(o.Text, packets)
	}
	err := uapi.CheckDevice("soft?" + o.key + "=" + text)
	if err == nil {
		o.Text = text
	}
	var op *uapi.OpError
	if errors.As(err, &op) {
		return errors.New(strings.TrimSuffix(op.Err.Error(), " (invalid argument)"))
	}
	return err
}

// takeCallRules adds the rules of calls in a text to the environment's, and
// returns the others.
func takeCallRules(text string) (packets string, err error) {
	packets, calls, err := refuse.Split(text)
	if err == nil {
		_, err = refuse.Parse(calls)
	}
	if err != nil || calls == "" {
		return packets, err
	}
	return packets, os.Setenv(refuse.EnvFault, refuse.Join(os.Getenv(refuse.EnvFault), calls))
}

// ForPrograms returns the names of soft devices that programs do not open by
// name, with the flags' options: of those that check passes, or of soft if none
// is named.
func (f *DeviceFlags) ForPrograms(devices []string, check func(name string) error) (names []string, err error) {
	if len(devices) == 0 {
		devices = []string{"soft"}
	}
	for _, d := range devices {
		if err := check(d); err != nil {
			return nil, &UsageError{Err: err}
		}
		name, err := f.forProgram(d)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// forProgram returns the name of one. Rules of calls in it become those of all.
func (f *DeviceFlags) forProgram(device string) (string, error) {
	name, options, _ := strings.Cut(device, "?")
	for option := range strings.SplitSeq(options, "&") {
		rules, ok := strings.CutPrefix(option, "fault=")
		if ok {
			packets, err := takeCallRules(rules)
			if err != nil {
				return "", &UsageError{Err: fmt.Errorf("device %q: %w", device, err)}
			}
			if option = "fault=" + packets; packets == "" {
				continue
			}
		}
		name = WithOptions(name, option)
	}
	return WithOptions(name, f.Options()), nil
}

// Add adds all the flags to a command.
func (f *DeviceFlags) Add(cmd *cobra.Command) {
	f.AddDevice(cmd)
	f.AddFaults(cmd)
	f.MTU.key, f.MTU.kind = "mtu", "bytes"
	cmd.Flags().VarP(&f.MTU, "mtu", "m", "path MTU: 256, 512, 1024, 2048 or 4096 (default: the largest that fits)")
}

// AddFaults adds the flags of the faults only.
func (f *DeviceFlags) AddFaults(cmd *cobra.Command) {
	for i, o := range [len(f.faults)]struct{ key, kind, usage string }{
		{"loss", "share", "lose this share of the packets sent from here, like 5% (soft devices)"},
		{"reorder", "share", "send this share of the packets late, like 10%"},
		{"dup", "share", "send this share of the packets twice, like 1%"},
		{"corrupt", "share", "invert one bit in this share of the packets, like 0.1%"},
		{"delay", "duration", "send every packet this much later, like 2ms"},
		{"fault", "rule", "do this to packets, 'drop op=READ_RESPONSE_MIDDLE nth=3', calls, 'call=CREATE_QP errno=ENOMEM', or completions, or @FILE (docs/faults.md; repeatable)"},
	} {
		f.faults[i] = Option{key: o.key, kind: o.kind, many: o.key == "fault"}
		cmd.Flags().Var(&f.faults[i], o.key, o.usage)
	}
	cmd.Flags().Uint64Var(&f.Seed, "seed", 0, "seed of the faults; the same seed hits the same packets (default: chosen and printed)")
}

// Given returns the first of some flags, or of those of the faults, that the
// command was given; empty is none.
func (f *DeviceFlags) Given(cmd *cobra.Command, names ...string) string {
	for _, o := range f.faults {
		names = append(names, o.key)
	}
	for _, name := range append(names, "seed") {
		if cmd.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

// AddDevice adds -d, --device only.
func (f *DeviceFlags) AddDevice(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.Device, "device", "d", "", "device: soft, soft:ADDRESS or a kernel device's name (default: $RDMASHIM_DEVICE, else soft)")
}

// ChooseSeed picks a seed when faults are wanted and none was given, so that
// the run can be repeated.
func (f *DeviceFlags) ChooseSeed() {
	wanted := slices.ContainsFunc(f.faults[:], func(o Option) bool { return o.Text != "" && !o.many })
	if wanted && f.Seed == 0 {
		f.Seed = uint64(rand.Uint32()) + 1
	}
}

// Options renders the faults as device options: "loss=5%&seed=7".
func (f *DeviceFlags) Options() string {
	var list []string
	seed := Option{key: "seed"}
	if f.Seed != 0 {
		seed.Text = strconv.FormatUint(f.Seed, 10)
	}
	for _, o := range slices.Concat(f.faults[:], []Option{seed, f.MTU}) {
		if o.Text != "" {
			list = append(list, o.key+"="+o.Text)
		}
	}
	return strings.Join(list, "&")
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
