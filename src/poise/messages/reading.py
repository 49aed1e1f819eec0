"""Texts of the area "reading": id -> (English, Chinese)."""

from __future__ import annotations

TEXTS: dict[str, tuple[str, str]] = {
    "reading.torn-archive": (
        "the {what} breaks off after {bytes} bytes ({error}); what comes before was read",
        "{what} 在 {bytes} 字节后中断（{error}）；此前的内容已读取",
    ),
    "reading.long-line": (
        "{count} lines are longer than {size} bytes and were cut",
        "有 {count} 行超过 {size} 字节，已被截断",
    ),
    "reading.torn-end": (
        "the file breaks off inside its last record, {place}; what comes before was read",
        "文件在最后一条记录中断（{place}）；此前的内容已读取",
    ),
    "reading.bad-lines": (
        "{count} lines could not be read and were skipped, the first is line {line}",
        "有 {count} 行无法读取而被跳过，第一处在第 {line} 行",
    ),
    "reading.no-header": (
        "the table has no header; its columns are called {first} to {last}",
        "表格没有表头；各列命名为 {first} 至 {last}",
    ),
    "reading.header-again": (
        "the header is repeated in line {line}: the run was restarted or its log concatenated ({count} times)",
        "第 {line} 行再次出现表头：训练曾重启或日志被拼接（共 {count} 次）",
    ),
    "reading.no-history": (
        "this file holds only the last value of each signal, so nothing can be said of the course of the run; diagnose its history",
        "该文件只含各信号的最终值，无法判断训练过程；请诊断其历史记录",
    ),
}
