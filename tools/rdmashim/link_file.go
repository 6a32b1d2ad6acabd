package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

// setupFile is a setup of links as TOML, and as JSON of 'link save -j':
//
//	[system]
//	netns = "shared"
//
//	[[link]]
//	name = "rxe0"
//	netdev = "eth0"
//	mtu = 9000
//	netns = "blue"
type setupFile struct {
	System *setupSystem `toml:"system,omitempty" json:"system,omitempty"`
	Links  []setupLink  `toml:"link" json:"link"`
}

type setupSystem struct {
	NetNS string `toml:"netns,omitempty" json:"netns,omitempty"` // shared or exclusive
}

type setupLink struct {
	Name   string `toml:"name" json:"name"`
	Type   string `toml:"type,omitempty" json:"type,omitempty"` // rxe, the only one
	NetDev string `toml:"netdev" json:"netdev"`
	MTU    *int   `toml:"mtu,omitempty" json:"mtu,omitempty"`     // of the network device, in bytes
	NetNS  string `toml:"netns,omitempty" json:"netns,omitempty"` // network namespace of the network device
}

// maxSetupFile bounds a file in bytes: thousands of links.
const maxSetupFile = 1 << 20

// readSetup reads a file, or stdin for "-".
func readSetup(path string, stdin io.Reader) (netlinkmgr.Setup, error) {
	in, name := stdin, "stdin"
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return netlinkmgr.Setup{}, err
		}
		defer f.Close()
		in, name = f, path
	}
	text, err := io.ReadAll(io.LimitReader(in, maxSetupFile+1))
	if err != nil {
		return netlinkmgr.Setup{}, err
	}
	if len(text) > maxSetupFile {
		return netlinkmgr.Setup{}, fmt.Errorf("%s is longer than %d bytes", name, maxSetupFile)
	}
	s, err := parseSetup(text)
	if err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// parseSetup reads TOML and checks what can be checked without a system.
func parseSetup(text []byte) (netlinkmgr.Setup, error) {
	var s netlinkmgr.Setup
	var f setupFile
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&f); err != nil {
		return s, tomlError(err)
	}
	if f.System != nil && f.System.NetNS != "" {
		mode, err := netNSMode(f.System.NetNS)
		if err != nil {
			return s, fmt.Errorf("[system] netns: %w", err)
		}
		s.NetNS = &mode
	}
	for i, l := range f.Links {
		if l.Type != "" && l.Type != "rxe" {
			return s, &netlinkmgr.SetupError{Link: i + 1, Name: l.Name, Why: fmt.Sprintf("type %q is not rxe", l.Type)}
		}
		link := netlinkmgr.LinkSetup{Name: l.Name, NetDev: l.NetDev, NetNS: l.NetNS}
		if l.MTU != nil {
			if link.MTU = *l.MTU; link.MTU == 0 {
				link.MTU = -1 // 0 would leave it as it is
			}
		}
		s.Links = append(s.Links, link)
	}
	return s, s.Check()
}

// netNSMode reads shared or exclusive.
func netNSMode(word string) (netlinkmgr.NetNSMode, error) {
	for _, mode := range []netlinkmgr.NetNSMode{netlinkmgr.NetNSExclusive, netlinkmgr.NetNSShared} {
		if mode.String() == word {
			return mode, nil
		}
	}
	return 0, fmt.Errorf("%q is neither shared nor exclusive", word)
}

// tomlError says where in the file something is wrong, on one line.
func tomlError(err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) && len(unknown.Errors) > 0 {
		var list []string
		for i := range unknown.Errors {
			e := &unknown.Errors[i]
			line, _ := e.Position()
			list = append(list, fmt.Sprintf("line %d: unknown key %q", line, strings.Join(e.Key(), ".")))
		}
		return errors.New(strings.Join(list, "; ") + " (known: system.netns, link.name, link.type, link.netdev, link.mtu, link.netns)")
	}
	var at *toml.DecodeError
	if errors.As(err, &at) {
		line, column := at.Position()
		says := strings.TrimPrefix(at.Error(), "toml: ")
		// The library speaks of Go's types.
		if what, _, ok := strings.Cut(says, " into "); ok {
			says = fmt.Sprintf("%s cannot be a TOML %s", strings.Join(at.Key(), "."), strings.TrimPrefix(what, "cannot decode TOML "))
		}
		return fmt.Errorf("line %d, column %d: %s", line, column, says)
	}
	return err
}

// setupDocument puts a setup into the file's form.
func setupDocument(s netlinkmgr.Setup) setupFile {
	f := setupFile{Links: []setupLink{}}
	if s.NetNS != nil {
		f.System = &setupSystem{NetNS: s.NetNS.String()}
	}
	for _, l := range s.Links {
		link := setupLink{Name: l.Name, NetDev: l.NetDev, NetNS: l.NetNS}
		if l.MTU != 0 {
			link.MTU = &l.MTU
		}
		f.Links = append(f.Links, link)
	}
	return f
}

// writeSetup writes TOML.
func writeSetup(w io.Writer, s netlinkmgr.Setup) error {
	text, err := toml.Marshal(setupDocument(s))
	if err != nil {
		return err
	}
	if len(s.Links) == 0 {
		text = bytes.Replace(text, []byte("link = []\n"), nil, 1)
	}
	_, err = fmt.Fprintf(w, "# rxe links, for 'rdmashim link apply'; mtu is the network device's.\n%s", text)
	return err
}
