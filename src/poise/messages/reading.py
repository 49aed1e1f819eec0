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
    "reading.no-steps": (
        "the log states no step; its rows are counted from 0",
        "日志没有步数；按行从 0 计数",
    ),
    "reading.unrolled": (
        "{name} starts anew in each {epoch}; it was counted on with {per_epoch} steps per epoch",
        "{name} 在每个 {epoch} 重新计数；已按每轮 {per_epoch} 步连续累计",
    ),
    "reading.step-order": (
        "{count} rows came late; all were kept and put in step order",
        "有 {count} 行步数次序颠倒；全部保留并按步数排序",
    ),
    "reading.restarts": (
        "the steps go back {count} times (to {steps}): several runs or resumes in one log, each judged by itself",
        "步数回退 {count} 次（回到 {steps}）：日志中含多次运行或续训，分别判断",
    ),
    "reading.said-twice": (
        "{count} rows repeat the row before them and were folded: two writers wrote this file",
        "{count} 行与前一行完全相同，已合并：该文件由两个进程重复写入",
    ),
    "reading.copy": (
        "a stretch of {count} rows is printed twice and was read once",
        "有 {count} 行的一段内容重复出现，只读取一次",
    ),
    "reading.placeholder": (
        "{name} is {value:g} in all {count} rows: a placeholder, not a measurement",
        "{name} 在全部 {count} 行中均为 {value:g}：是占位值而非测量值",
    ),
    "reading.converted-sqrt": (
        "{name} is a square; its root is shown as {signal}",
        "{name} 是平方值；其平方根显示为 {signal}",
    ),
    "reading.converted-negate": (
        "{name} is minus the entropy; its sign was turned for {signal}",
        "{name} 是负熵；已取相反数作为 {signal}",
    ),
    "reading.converted-log": (
        "the log has no loss; {signal} is the logarithm of {name}",
        "日志中没有损失；{signal} 取自 {name} 的对数",
    ),
    "reading.ranks": (
        "{count} ranks write {name}; shown is their mean over finite values",
        "{count} 个 rank 写入 {name}；显示的是其有限值的平均",
    ),
    "reading.ranks-not-finite": (
        "{name} is NaN or infinite on {count} ranks: {ranks}",
        "{name} 在 {count} 个 rank 上为 NaN 或无穷：{ranks}",
    ),
    "reading.no-objects": (
        "{count} values are no JSON objects and were skipped",
        "有 {count} 个值不是 JSON 对象，已跳过",
    ),
    "reading.ragged": (
        "{count} rows have more or fewer cells than the header, the first is line {line}",
        "有 {count} 行的单元格数与表头不符，第一处在第 {line} 行",
    ),
    "reading.damaged": (
        "{count} places of the file are damaged, the first at byte {byte}; they were left out",
        "文件有 {count} 处损坏，第一处在第 {byte} 字节；已跳过",
    ),
}
