package registration

import (
	"fmt"
	"syscall"
)

// check refuses a configuration with which no connection can be made.
func (c *Config) check() error {
	wrong := func(errno syscall.Errno, text string) error {
		return fmt.Errorf("%s: %w", "Config"+text, errno)
	}
	switch {
	case c.Transport == nil:
		return wrong(syscall.EINVAL, ".Transport is nil; set Soft, Kernel or TCP")
	case c.TLS == nil && !c.Insecure:
		return wrong(syscall.EINVAL, " has neither TLS nor Insecure; set TLS, or Insecure to go without")
	case c.TLS != nil && c.Insecure:
		return wrong(syscall.EINVAL, " has TLS and Insecure; set one of them")
	case c.TLS != nil && c.Protocol != "":
		return wrong(syscall.EINVAL, ".Protocol is for connections without TLS; name it in TLS.NextProtos")
	case c.TLS != nil && len(c.TLS.NextProtos) == 0:
		return wrong(syscall.ENOPROTOOPT, ".TLS names no application protocol; set NextProtos")
	case c.TLS != nil && !c.DialOnly && len(c.TLS.Certificates) == 0 && c.TLS.GetCertificate == nil && c.TLS.GetConfigForClient == nil:
		return wrong(syscall.ENOENT, ".TLS has no certificate; set Certificates, or DialOnly if nothing listens")
	}
	return c.Streams.Check()
}
