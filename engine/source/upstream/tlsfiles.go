package upstream

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"ledgerd/engine/source/unpack"
)

// maxPEMBytes bounds a file of certificates.
const maxPEMBytes = 1 << 20

// TLSFiles say by what files a client of TLS knows a server and is known to it. The zero value is the authorities of the system
// and no certificate.
type TLSFiles struct {
	CA        string // authorities, PEM
	Cert, Key string // what is shown to a server that asks for it, PEM; read at each handshake
	Name      string // that the server's certificate is for; "" is the host of its address
}

// TLSOptions are the names of the options of an address that fill TLSFiles.
var TLSOptions = []string{"tls-ca", "tls-cert", "tls-key", "tls-name"}

// Set takes an option of TLSOptions, and reports whether it is one.
func (f *TLSFiles) Set(option, value string) bool {
	for i, field := range []*string{&f.CA, &f.Cert, &f.Key, &f.Name} {
		if option == TLSOptions[i] {
			*field = value
			return true
		}
	}
	return false
}

// ForAddress is Config for the options of an address, nil where none is given. Only one with https may have some.
func (f TLSFiles) ForAddress(isHTTPS bool) (*tls.Config, error) {
	switch {
	case f == TLSFiles{}:
		return nil, nil
	case !isHTTPS:
		return nil, errors.New("the options of TLS are for https://")
	}
	return f.Config()
}

// Config reads the files. Its errors name what a file is, and no path.
func (f TLSFiles) Config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.Name}
	if f.CA != "" {
		var err error
		if config.RootCAs, err = ReadAuthorities(f.CA); err != nil {
			return nil, fmt.Errorf("the file of authorities: %w", err)
		}
	}
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("a certificate and its key go together")
	}
	if f.Cert != "" {
		read := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			cert, certErr := unpack.ReadRegular(f.Cert, maxPEMBytes)
			key, keyErr := unpack.ReadRegular(f.Key, maxPEMBytes)
			if err := cmp.Or(certErr, keyErr); err != nil {
				return nil, err
			}
			pair, err := tls.X509KeyPair(cert, key)
			return &pair, err
		}
		if _, err := read(nil); err != nil {
			return nil, fmt.Errorf("the certificate to show, or its key: %w", err)
		}
		config.GetClientCertificate = read
	}
	return config, nil
}

// ReadAuthorities reads the certificates of a file.
func ReadAuthorities(path string) (*x509.CertPool, error) {
	content, err := unpack.ReadSmall(path, maxPEMBytes)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, errors.New("it holds no certificate in PEM")
	}
	return pool, nil
}
