package guest

import (
	"fmt"
	"strings"

	"github.com/u-root/u-root/pkg/kmodule"
)

// loadModules loads kernel modules and the modules that they need, and returns
// a report on those that are not to be had. A module that is already there,
// also as a part of the kernel, needs nothing.
func loadModules(names ...string) string {
	p, err := kmodule.NewProber(kmodule.ProbeOpts{})
	if err != nil {
		return "modules: " + err.Error()
	}
	said := []string{"modules loaded"}
	for _, name := range names {
		if err := p.Probe(name, ""); err != nil {
			said = append(said, fmt.Sprintf("not to be had: %s: %v", name, err))
		}
	}
	return strings.Join(said, "; ")
}
