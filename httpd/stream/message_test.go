package stream

import "testing"

// A filter that is told twice would be half of what the client meant: it is refused, and whatever stands beside it twice.
func TestFiltersAreToldOnce(t *testing.T) {
	const begin = `{"type":"subscribe","programs":[],`
	for text, ok := range map[string]bool{
		begin + `"data_size":2}`:                                         true,
		begin + `"data_size":2,"data_size":3}`:                           false,
		begin + `"data_size":2,"data\u005fsize":3}`:                      false,
		begin + `"data_size":2,"programs":[]}`:                           false,
		begin + `"memcmp":[{"offset":0,"bytes":"2g"}]}`:                  true,
		begin + `"memcmp":[{"offset":0,"bytes":"2g"}],"memcmp":[{}]}`:    false,
		begin + `"memcmp":[{"offset":0,"bytes":"2g","offset":1}]}`:       false,
		begin + `"memcmp":[{"offset":0,"offset":0,"bytes":"2g"}, null]}`: false,
		begin + `"memcmp":[null]}`:                                       false,
		begin + `"programs":[]}`:                                         true,
	} {
		if _, _, err := parseRequest([]byte(text)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}
