package dump

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/flow"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/live"
	"github.com/rdmashim/rdmashim/tools/rdmashim/explain"
)

// filter chooses packets. The zero filter passes all.
type filter struct {
	qpns    qpnList
	opcodes opcodeList
	known   *flow.Tracker // knows the queue pairs that packets come from
}

// set reports whether the filter was asked for anything.
func (f *filter) set() bool { return f.qpns != nil || f.opcodes.tests != nil }

func (f *filter) passes(p *dissect.Packet) bool {
	return (f.qpns == nil || f.byQPN(p)) && (f.opcodes.tests == nil || f.opcodes.match(p))
}

// byQPN reports whether a packet goes to one of the queue pairs, comes from
// one, or is of the connection manager and makes one known.
func (f *filter) byQPN(p *dissect.Packet) bool {
	if !p.HasBTH {
		return false
	}
	if slices.Contains(f.qpns, p.Wire.DestQPN) {
		return true
	}
	if q, ok := f.known.Source(p); ok && slices.Contains(f.qpns, q) {
		return true
	}
	if p.MAD == nil {
		return false
	}
	switch m := p.MAD.CM.(type) {
	case *wire.REQ:
		return slices.Contains(f.qpns, m.LocalQPN)
	case *wire.REP:
		return slices.Contains(f.qpns, m.LocalQPN)
	}
	return false
}

// qpnList is a flag: queue pair numbers, joined by commas.
type qpnList []wire.QPN

func (*qpnList) Type() string { return "list" }

func (l *qpnList) String() string {
	var words []string
	for _, q := range *l {
		words = append(words, q.String())
	}
	return strings.Join(words, ",")
}

func (l *qpnList) Set(text string) error {
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(word), 0, 32)
		if err != nil || !wire.QPN(n).Valid() {
			return fmt.Errorf("%q is no queue pair number: want 0 to 16777215, or 0x0 to 0xffffff", word)
		}
		*l = append(*l, wire.QPN(n))
	}
	return nil
}

// opcodeList is a flag: opcodes and groups of them, joined by commas.
type opcodeList struct {
	words []string
	tests []func(*dissect.Packet) bool
}

func (*opcodeList) Type() string     { return "list" }
func (l *opcodeList) String() string { return strings.Join(l.words, ",") }

func (l *opcodeList) Set(text string) error {
	for word := range strings.SplitSeq(text, ",") {
		test, err := opcodeTest(strings.TrimSpace(word))
		if err != nil {
			return err
		}
		l.words, l.tests = append(l.words, word), append(l.tests, test)
	}
	return nil
}

func (l *opcodeList) match(p *dissect.Packet) bool {
	return p.HasBTH && slices.ContainsFunc(l.tests, func(test func(*dissect.Packet) bool) bool { return test(p) })
}

// opcodeGroups are words for more than one opcode, or for a part of one.
var opcodeGroups = map[string]func(*dissect.Packet) bool{
	"send":   ofOperation(wire.OpSend),
	"write":  ofOperation(wire.OpWrite, wire.OpAtomicWrite),
	"read":   ofOperation(wire.OpRead, wire.OpReadResponse),
	"atomic": ofOperation(wire.OpCompareSwap, wire.OpFetchAdd, wire.OpAtomicAck),
	"ack":    ofOperation(wire.OpAck, wire.OpAtomicAck),
	"nak": func(p *dissect.Packet) bool {
		return refuses(p) && !p.Wire.AETH.Syndrome.IsRNR()
	},
	"rnr": func(p *dissect.Packet) bool { return refuses(p) && p.Wire.AETH.Syndrome.IsRNR() },
	"cm":  func(p *dissect.Packet) bool { return p.MAD != nil },
	"rc":  ofService(wire.ServiceRC),
	"uc":  ofService(wire.ServiceUC),
	"ud":  ofService(wire.ServiceUD),
}

func ofOperation(list ...wire.Operation) func(*dissect.Packet) bool {
	return func(p *dissect.Packet) bool { return slices.Contains(list, p.Wire.Opcode.Operation()) }
}

func ofService(s wire.Service) func(*dissect.Packet) bool {
	return func(p *dissect.Packet) bool { return p.Wire.Opcode.Service() == s }
}

func refuses(p *dissect.Packet) bool {
	return p.Err == nil && p.Wire.Opcode.Carries(wire.HasAETH) && !p.Wire.AETH.Syndrome.IsACK()
}

// opcodeTest finds what a word names: a group, a number, or opcodes by their
// name, of every service where the name has none.
func opcodeTest(word string) (func(*dissect.Packet) bool, error) {
	if test, ok := opcodeGroups[strings.ToLower(word)]; ok {
		return test, nil
	}
	if n, err := strconv.ParseUint(word, 0, 8); err == nil {
		return func(p *dissect.Packet) bool { return uint64(p.Wire.Opcode) == n }, nil
	}
	var set [256]bool
	any := false
	for n := range set {
		name := wire.Opcode(n).String()
		_, bare, _ := strings.Cut(name, " ")
		if wire.Opcode(n).Known() && (sameName(name, word) || sameName(bare, word)) {
			set[n], any = true, true
		}
	}
	if !any {
		err := fmt.Errorf("%q is no opcode or group of them; 'rdmashim explain opcode' and 'rdmashim dump --help' list them", word)
		if near := explain.Nearest("opcode "+word, 3); len(near) > 0 {
			err = fmt.Errorf("%w; near to it: %s", err, strings.Join(near, ", "))
		}
		return nil, err
	}
	return func(p *dissect.Packet) bool { return set[p.Wire.Opcode] }, nil
}

// sameName compares names but for case and separators.
func sameName(name, word string) bool {
	plain := strings.NewReplacer("_", "", "-", "", " ", "")
	return word != "" && strings.EqualFold(plain.Replace(name), plain.Replace(word))
}

// completeLive and completeOpcodes are a shell's offers for the flags.
func completeLive(cmd *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
	names, how := cli.CompleteInterfaces(cmd, args, begin)
	return append(names, live.Any), how
}

func completeOpcodes(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for name := range opcodeGroups {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, e := range explain.All(explain.Opcode) {
		names = append(names, strings.ReplaceAll(e.Name, " ", "_"))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
