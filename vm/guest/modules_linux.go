package guest

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/u-root/u-root/pkg/kmodule"
)

// loadModules loads kernel modules and the modules that they need, and returns
// a report, and the error of the first that is not to be had. A module that is
// already there, also as a part of the kernel, needs nothing.
func loadModules(names ...string) (report string, first error) {
	p, err := kmodule.NewProber(kmodule.ProbeOpts{})
	if err != nil {
		return "modules: " + err.Error(), err
	}
	said := []string{"modules loaded"}
	for _, name := range names {
		if err := p.Probe(name, ""); err != nil {
			err = fmt.Errorf("not to be had: %s: %w", name, err)
			said, first = append(said, err.Error()), cmp.Or(first, err)
		}
	}
	return strings.Join(said, "; "), first
}
