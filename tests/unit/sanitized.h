/* Does a sanitizer look on? It sees the same in a part of the rounds, each of which takes ten times as long. */
#ifndef PYROMETER_TESTS_SANITIZED_H
#define PYROMETER_TESTS_SANITIZED_H

#ifndef __has_feature /* gcc */
#define __has_feature(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif

#endif
