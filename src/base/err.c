/* The error list as text. */
#include "base/err.h"

#include <errno.h>

const char *err_text(int code)
{
    switch (code) {
    case 0:
        return "success";
#define X(name, text)                                                                              \
    case E_##name:                                                                                 \
        return text;
        ERR_LIST(X)
#undef X
    default:
        return "unknown error";
    }
}

const char *err_name(int code)
{
    switch (code) {
    case 0:
        return "OK";
#define X(name, text)                                                                              \
    case E_##name:                                                                                 \
        return #name;
        ERR_LIST(X)
#undef X
    default:
        return "UNKNOWN";
    }
}

int err_from_errno(int os_errno)
{
    switch (os_errno) {
    case 0:
        return 0;
    case ENOMEM:
        return E_NOMEM;
    case ENOSPC:
    case EDQUOT:
        return E_NOSPACE;
    case ENOENT:
    case ENOTDIR:
        return E_NOENT;
    case EEXIST:
        return E_EXISTS;
    case EACCES:
    case EROFS:
        return E_ACCESS;
    case EPERM:
        return E_PERM;
    case EISDIR:
        return E_ISDIR;
    case ESRCH:
        return E_NOPROC;
    case EINVAL:
        return E_INVALID;
    case EIO:
    case EPIPE:
        return E_IO;
    case EFBIG:
        return E_LIMIT;
    case EMFILE:
    case ENFILE:
        return E_FILES;
    default:
        return E_SYSTEM;
    }
}
